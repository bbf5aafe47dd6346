//! Keeps summaries in line with messages: marks those that cover a changed message. The caller has
//! locked the conversation.

use base::clock::Timestamp;
use base::ids::ConversationId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, UpdateMany};

use crate::conversations::conversation;
use crate::memories::message_changes::MessageChange;
use crate::memories::summaries::summary::{Column, Entity, SummaryStatus};
use crate::memories::tasks::summarizing_task;

/// Applies the change of a message to the summaries that cover it, and requests new ones. Executes no
/// statement if the conversation has never been summarized. Returns whether a summary in use has changed.
///
/// The text of a deleted message is in no prompt afterwards: older versions that cover it are deleted,
/// and the version in use is left out of prompts until a model has written it again. The text of a changed message
/// stays in use until then.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn apply(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    seq: i64,
    change: MessageChange,
    now: Timestamp,
) -> Result<bool, DbErr> {
    if row.summary_goal_seq < seq {
        return Ok(false);
    }
    let mut in_use = covering(Entity::update_many(), row.id, seq)
        .col_expr(Column::Status, Expr::value(SummaryStatus::Stale))
        .filter(Column::Status.ne(SummaryStatus::Superseded));
    if change == MessageChange::Hidden {
        in_use = in_use.col_expr(Column::IsUsable, Expr::value(false));
        let superseded = Entity::delete_many()
            .filter(Column::ConversationId.eq(row.id))
            .filter(Column::FromSeq.lte(seq))
            .filter(Column::ToSeq.gte(seq))
            .filter(Column::Status.eq(SummaryStatus::Superseded));
        superseded.exec(tx).await?;
    }
    if in_use.exec(tx).await?.rows_affected == 0 {
        return Ok(false);
    }
    summarizing_task::request(tx, row, now).await?;
    Ok(true)
}

fn covering(
    update: UpdateMany<Entity>,
    conversation: ConversationId,
    seq: i64,
) -> UpdateMany<Entity> {
    update
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::FromSeq.lte(seq))
        .filter(Column::ToSeq.gte(seq))
}
