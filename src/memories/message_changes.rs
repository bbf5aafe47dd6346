//! Keeps the memories of a space in line with its messages: what was made from a message alone is
//! deleted when the message is deleted or its text changes, and restored when the message is.

use base::clock::Timestamp;
use base::ids::{MemoryId, MessageId, SpaceId};
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::memories::memory::{Column, Entity, Model};
use crate::memories::{memory_deletion, memory_source, memory_store};
use crate::spaces::space;

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageChange {
    /// It was deleted, or excluded from prompts.
    Hidden,
    Restored,
    /// Another text is shown.
    TextChanged,
}

/// Applies the change of a message to the memories that were made from it alone.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn apply(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    message: MessageId,
    change: MessageChange,
    now: Timestamp,
) -> Result<(), DbErr> {
    let made = Entity::find()
        .filter(Column::SpaceId.eq(space))
        .filter(Column::Id.in_subquery(made_from(message)))
        .filter(Column::Id.not_in_subquery(made_from_others(message)))
        .all(tx)
        .await?;
    if made.is_empty() {
        return Ok(());
    }
    let version = space::next_memory_version(tx, space).await?;
    match change {
        MessageChange::Hidden => {
            let ids = ids(&made, |it| it.deleted_at.is_none());
            memory_deletion::mark_deleted(tx, &ids, version, now).await
        }
        MessageChange::TextChanged => {
            let outdated = ids(&made, |it| !it.is_kept_by_people());
            let is_stored = |it: &Model| it.deleted_at.is_none() && !it.is_kept_by_people();
            let stored = ids(&made, is_stored);
            memory_deletion::mark_deleted(tx, &stored, version, now).await?;
            // None of them is restored with the message, because its text is another one.
            memory_source::Entity::delete_many()
                .filter(memory_source::Column::MemoryId.is_in(outdated))
                .exec(tx)
                .await
                .map(drop)
        }
        MessageChange::Restored => restore(tx, &made, version).await,
    }
}

/// Selects the memories with this source.
fn made_from(message: MessageId) -> SelectStatement {
    Query::select()
        .column(memory_source::Column::MemoryId)
        .from(memory_source::Entity)
        .and_where(Expr::col(memory_source::Column::MessageId).eq(message))
        .to_owned()
}

/// Selects the memories of this message that have another source, too.
fn made_from_others(message: MessageId) -> SelectStatement {
    Query::select()
        .column(memory_source::Column::MemoryId)
        .from(memory_source::Entity)
        .and_where(Expr::col(memory_source::Column::MessageId).ne(message))
        .and_where(Expr::col(memory_source::Column::MemoryId).in_subquery(made_from(message)))
        .to_owned()
}

fn ids(made: &[Model], is_affected: impl Fn(&Model) -> bool) -> Vec<MemoryId> {
    let affected = made.iter().filter(|it| is_affected(it));
    affected.map(|it| it.id).collect()
}

/// Restores deleted memories whose content was not stored again meanwhile.
async fn restore(tx: &impl ConnectionTrait, made: &[Model], version: i64) -> Result<(), DbErr> {
    for row in made.iter().filter(|it| it.deleted_at.is_some()) {
        let owner = row.space_membership_id;
        let same = memory_store::find_by_content(tx, row.space_id, owner, &row.content).await?;
        if same.is_some() {
            continue;
        }
        Entity::update_many()
            .col_expr(Column::DeletedAt, Expr::value(Option::<Timestamp>::None))
            .col_expr(Column::SpaceVersion, Expr::value(version))
            .filter(Column::Id.eq(row.id))
            .exec(tx)
            .await?;
    }
    Ok(())
}
