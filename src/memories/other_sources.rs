//! Sources of a memory in several conversations: if the same was said in each of them, one memory has the
//! messages of all of them, and its row names one of the conversations.
//!
//! **Invariant:** memories may be made from each source in a conversation that the row does not name. When
//! this is no longer true for one of them, all sources in its conversation are removed.

use std::collections::HashSet;

use base::ids::{ConversationId, MemoryId, MessageId};
use sea_orm::FromQueryResult;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};

use crate::conversations::conversation::ConversationKind;
use crate::conversations::{conversation, message};
use crate::memories::memory_source::{Column, Entity};
use crate::memories::{memory, memory_source};

/// The sources of a memory in one other conversation.
#[derive(FromQueryResult)]
struct OtherSource {
    memory_id: MemoryId,
    conversation_id: ConversationId,
    kind: ConversationKind,
    from_seq: i64,
    to_seq: i64,
}

/// Adds messages of another conversation to the sources of a memory, so that the memory remains when its
/// conversation is deleted. Does nothing if the memory was not made in a conversation, because it then
/// remains anyway.
///
/// # Errors
/// Returns an error when the database fails.
pub(super) async fn add(
    tx: &impl ConnectionTrait,
    known: &memory::Model,
    (conversation, messages): (ConversationId, Vec<MessageId>),
    version: i64,
) -> Result<(), DbErr> {
    let others = known.conversation_id.filter(|it| *it != conversation);
    let (Some(first), Some(message)) = (others, messages.first().copied()) else {
        return Ok(());
    };
    memory_source::insert(tx, known.id, messages).await?;
    let branches = conversation::Entity::find()
        .filter(conversation::Column::Id.is_in([first, conversation]))
        .filter(conversation::Column::Kind.eq(ConversationKind::Branch))
        .all(tx)
        .await?;
    let is_branch = |id| branches.iter().any(|it| it.id == id);
    // Other conversations recall nothing of a branch.
    if is_branch(first) && !is_branch(conversation) {
        move_outside(tx, first, Some(message), version).await?;
    }
    Ok(())
}

/// Selects the ids of the memories that have sources outside this conversation.
pub(super) fn made_outside(conversation: ConversationId) -> SelectStatement {
    select_outside(conversation)
        .column((Entity, Column::MemoryId))
        .to_owned()
}

/// Changes the rows of the memories of a conversation so that they name another conversation in which the
/// same was said, if there is one. With `only`, changes only the memories that were made from this message.
/// Returns the ids of the changed memories.
///
/// # Errors
/// Returns an error when the database fails.
pub(super) async fn move_outside(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    only: Option<MessageId>,
    version: i64,
) -> Result<HashSet<MemoryId>, DbErr> {
    let mut moved = HashSet::new();
    for it in list_outside(tx, conversation, only).await? {
        if !moved.insert(it.memory_id) {
            continue;
        }
        memory::Entity::update_many()
            .col_expr(
                memory::Column::ConversationId,
                Expr::value(it.conversation_id),
            )
            .col_expr(memory::Column::SourceFromSeq, Expr::value(it.from_seq))
            .col_expr(memory::Column::SourceToSeq, Expr::value(it.to_seq))
            .col_expr(memory::Column::SpaceVersion, Expr::value(version))
            .filter(memory::Column::Id.eq(it.memory_id))
            .exec(tx)
            .await?;
    }
    Ok(moved)
}

/// Returns the sources that the memories of a conversation have in other conversations. Branches are last,
/// because other conversations recall nothing of a branch.
async fn list_outside(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    only: Option<MessageId>,
) -> Result<Vec<OtherSource>, DbErr> {
    let mut select = select_outside(conversation);
    select
        .column((Entity, Column::MemoryId))
        .column((conversation::Entity, conversation::Column::Kind))
        .column((message::Entity, message::Column::ConversationId))
        .expr_as(seq().min(), "from_seq")
        .expr_as(seq().max(), "to_seq")
        .group_by_columns([(Entity, Column::MemoryId)])
        .group_by_columns([(conversation::Entity, conversation::Column::Kind)])
        .group_by_columns([(message::Entity, message::Column::ConversationId)]);
    if let Some(id) = only {
        select.and_where(
            Expr::col((Entity, Column::MemoryId)).in_subquery(memory_source::made_from(id)),
        );
    }
    let rows = tx.query_all(&select).await?;
    let rows: Result<Vec<OtherSource>, DbErr> = rows
        .iter()
        .map(|it| OtherSource::from_query_result(it, ""))
        .collect();
    let mut rows = rows?;
    rows.sort_by_key(|it| (it.kind == ConversationKind::Branch, it.conversation_id));
    Ok(rows)
}

fn seq() -> Expr {
    Expr::col((message::Entity, message::Column::Seq))
}

/// Builds a query for the memories whose rows name this conversation, joined with their sources in
/// other conversations. The caller adds the columns.
fn select_outside(conversation: ConversationId) -> SelectStatement {
    let id_of_memory = Expr::col((memory::Entity, memory::Column::Id));
    let id_of_message = Expr::col((message::Entity, message::Column::Id));
    let id_of_conversation = Expr::col((conversation::Entity, conversation::Column::Id));
    Query::select()
        .from(Entity)
        .inner_join(
            memory::Entity,
            id_of_memory.equals((Entity, Column::MemoryId)),
        )
        .inner_join(
            message::Entity,
            id_of_message.equals((Entity, Column::MessageId)),
        )
        .inner_join(
            conversation::Entity,
            id_of_conversation.equals((message::Entity, message::Column::ConversationId)),
        )
        .and_where(memory::Column::ConversationId.eq(conversation))
        .and_where(memory::Column::DeletedAt.is_null())
        .and_where(message::Column::ConversationId.ne(conversation))
        .cond_where(message::is_in_memory())
        .and_where(conversation::Column::Id.not_in_subquery(conversation::hidden_ids()))
        .to_owned()
}

/// Deletes the sources that are messages of this conversation: those of `memories`, or those of all memories
/// if it is `None`.
pub(super) async fn delete_of_conversation(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    memories: Option<Vec<MemoryId>>,
) -> Result<(), DbErr> {
    let messages = Query::select()
        .column(message::Column::Id)
        .from(message::Entity)
        .and_where(Expr::col(message::Column::ConversationId).eq(conversation))
        .to_owned();
    let mut delete = Entity::delete_many().filter(Column::MessageId.in_subquery(messages));
    if let Some(ids) = memories {
        delete = delete.filter(Column::MemoryId.is_in(ids));
    }
    delete.exec(tx).await.map(drop)
}
