//! Sources of a memory in several conversations: if the same was said in each of them, one memory has the
//! messages of all of them, and its row names one of the conversations.
//!
//! **Invariant:** the messages of a conversation count only if the memory may use all of them. Others stay
//! sources, so that the memory can name their conversation again when they are restored.

use std::collections::{HashMap, HashSet};

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MemoryId, MessageId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{FromQueryResult, QuerySelect};

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

/// The messages of one conversation from which a memory was made.
pub(super) struct OwnSources {
    pub from_seq: i64,
    pub to_seq: i64,
    pub messages: Vec<MessageId>,
}

/// Adds messages of another conversation to the sources of a memory, so that the memory remains when its
/// conversation is deleted. Does nothing if the memory was not made in a conversation, because it then
/// remains anyway. Returns whether a memory names another conversation now.
///
/// # Errors
/// Returns an error when the database fails.
pub(super) async fn add_sources(
    tx: &impl ConnectionTrait,
    known: &memory::Model,
    (conversation, messages): (ConversationId, Vec<MessageId>),
    version: i64,
) -> Result<bool, DbErr> {
    let others = known.conversation_id.filter(|it| *it != conversation);
    let (Some(first), Some(message)) = (others, messages.first().copied()) else {
        return Ok(false);
    };
    memory_source::insert(tx, known.id, messages).await?;
    leave_branch(tx, first, (conversation, message), version).await
}

/// Moves memories out of a branch, because no other conversation recalls the memories of a branch. If `first`
/// is a branch and the other conversation is not, the memories of the branch that were also made from this
/// message of the other conversation get another conversation. Returns whether a memory changed.
///
/// # Errors
/// Returns an error when the database fails.
pub(super) async fn leave_branch(
    tx: &impl ConnectionTrait,
    first: ConversationId,
    (conversation, message): (ConversationId, MessageId),
    version: i64,
) -> Result<bool, DbErr> {
    let branches = conversation::Entity::find()
        .filter(conversation::Column::Id.is_in([first, conversation]))
        .filter(conversation::Column::Kind.eq(ConversationKind::Branch))
        .all(tx)
        .await?;
    let is_branch = |id| branches.iter().any(|it| it.id == id);
    if !is_branch(first) || is_branch(conversation) {
        return Ok(false);
    }
    let moved = reassign_conversation(tx, first, Some(message), version).await?;
    Ok(!moved.is_empty())
}

/// Returns the memories that were made from this message, with all their messages of its conversation, if
/// they may use all of these.
///
/// # Errors
/// Returns an error when the database fails.
pub(super) async fn list_complete(
    tx: &impl ConnectionTrait,
    message: &message::Model,
) -> Result<HashMap<MemoryId, OwnSources>, DbErr> {
    let pairs = Entity::find()
        .filter(Column::MemoryId.in_subquery(memory_source::made_from(message.id)))
        .filter(Column::MessageId.in_subquery(messages_of(message.conversation_id)))
        .all(tx)
        .await?;
    let usable: Vec<(MessageId, i64)> = message::Entity::find()
        .select_only()
        .columns([message::Column::Id, message::Column::Seq])
        .filter(message::Column::Id.is_in(pairs.iter().map(|it| it.message_id)))
        .filter(message::is_usable_by_memory())
        .into_tuple()
        .all(tx)
        .await?;
    let seqs: HashMap<MessageId, i64> = usable.into_iter().collect();
    let mut of_memories: HashMap<MemoryId, Vec<MessageId>> = HashMap::new();
    for it in pairs {
        let ids = of_memories.entry(it.memory_id).or_default();
        ids.push(it.message_id);
    }
    let complete = of_memories.into_iter().filter_map(|(memory, messages)| {
        let seqs: Option<Vec<i64>> = messages.iter().map(|it| seqs.get(it).copied()).collect();
        let seqs = seqs?;
        let own = OwnSources {
            from_seq: *seqs.iter().min()?,
            to_seq: *seqs.iter().max()?,
            messages,
        };
        Some((memory, own))
    });
    Ok(complete.collect())
}

/// Returns those of these memories that a member knows who heard only what was said since `time`: all their
/// messages in the conversations of the space are newer, or they have none and belong to that member.
///
/// # Errors
/// Returns the database error if a query fails.
pub async fn list_heard(
    db: &impl ConnectionTrait,
    memories: &[MemoryId],
    member: MembershipId,
    time: Timestamp,
) -> Result<HashSet<MemoryId>, DbErr> {
    if memories.is_empty() {
        return Ok(HashSet::new());
    }
    let message = |column: message::Column| Expr::col((message::Entity, column));
    let oldest = Query::select()
        .column((Entity, Column::MemoryId))
        .expr(message(message::Column::CreatedAt).min())
        .from(Entity)
        .inner_join(
            message::Entity,
            message(message::Column::Id).equals((Entity, Column::MessageId)),
        )
        .and_where(Expr::col((Entity, Column::MemoryId)).is_in(memories.iter().copied()))
        .group_by_columns([(Entity, Column::MemoryId)])
        .to_owned();
    let rows = db.query_all(&oldest).await?;
    let oldest: Result<HashMap<MemoryId, Timestamp>, DbErr> = rows
        .iter()
        .map(|it| Ok((it.try_get_by_index(0)?, it.try_get_by_index(1)?)))
        .collect();
    let oldest = oldest?;
    let own: HashSet<MemoryId> = memory::Entity::find()
        .filter(memory::Column::Id.is_in(memories.iter().copied()))
        .filter(memory::Column::SpaceMembershipId.eq(member))
        .select_only()
        .column(memory::Column::Id)
        .into_tuple()
        .all(db)
        .await?
        .into_iter()
        .collect();
    let is_heard = |it: &MemoryId| match oldest.get(it) {
        Some(oldest) => *oldest >= time,
        None => own.contains(it),
    };
    Ok(memories.iter().copied().filter(is_heard).collect())
}

/// Selects the ids of the memories that were also made in another conversation than this one.
pub(super) fn select_shared_ids(conversation: ConversationId) -> SelectStatement {
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
pub(super) async fn reassign_conversation(
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
        .group_by_columns([(conversation::Entity, conversation::Column::Kind)]);
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
/// other conversations and grouped by memory and conversation. The caller adds the columns.
fn select_outside(conversation: ConversationId) -> SelectStatement {
    let id_of_memory = Expr::col((memory::Entity, memory::Column::Id));
    let id_of_message = Expr::col((message::Entity, message::Column::Id));
    let id_of_conversation = Expr::col((conversation::Entity, conversation::Column::Id));
    let is_unusable: Expr = Expr::case(message::is_usable_by_memory(), 0)
        .finally(1)
        .into();
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
        .and_where(conversation::Column::Id.not_in_subquery(conversation::hidden_ids()))
        .group_by_columns([(Entity, Column::MemoryId)])
        .group_by_columns([(message::Entity, message::Column::ConversationId)])
        .and_having(is_unusable.sum().eq(0))
        .to_owned()
}

/// Selects the ids of the messages of a conversation.
pub(super) fn messages_of(conversation: ConversationId) -> SelectStatement {
    Query::select()
        .column(message::Column::Id)
        .from(message::Entity)
        .and_where(Expr::col(message::Column::ConversationId).eq(conversation))
        .to_owned()
}

/// Deletes the sources that are messages of this conversation: those of `memories`, or those of all memories
/// if it is `None`.
pub(super) async fn delete_of_conversation(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    memories: Option<Vec<MemoryId>>,
) -> Result<(), DbErr> {
    let mut delete =
        Entity::delete_many().filter(Column::MessageId.in_subquery(messages_of(conversation)));
    if let Some(ids) = memories {
        delete = delete.filter(Column::MemoryId.is_in(ids));
    }
    delete.exec(tx).await.map(drop)
}
