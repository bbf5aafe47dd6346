//! Keeps the memories of a space in line with its messages: what was made from a message is deleted
//! when the message is deleted or its text changes, and restored when the message is.

use std::collections::HashSet;

use base::clock::Timestamp;
use base::ids::{MemoryId, SpaceId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};

use crate::conversations::message;
use crate::memories::memory::{Column, Entity, Model};
use crate::memories::tasks::embedding_task;
use crate::memories::{memory_deletion, memory_source, memory_store, other_sources};
use crate::spaces::space;

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageChange {
    /// It was deleted or excluded from prompts, or its memory was switched off.
    Hidden,
    /// The deletion or exclusion was undone, or its memory was switched on.
    Restored,
    /// Another text is shown.
    TextChanged,
}

/// The effect of a changed message on memories.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryEffect {
    /// The first and the last `seq` of the messages to learn from again: those that are also sources of a
    /// deleted memory.
    pub relearned: Option<(i64, i64)>,
    /// The version of the space's memories that changed memories get; `None` if none was made from
    /// the message.
    pub version: Option<i64>,
}

/// Applies the change of a message to the memories that were made from it. A memory that was also made in
/// another conversation remains, with the sources there.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn apply(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    message: &message::Model,
    change: MessageChange,
    now: Timestamp,
) -> Result<MemoryEffect, DbErr> {
    let mut made = Entity::find()
        .filter(Column::SpaceId.eq(space))
        .filter(Column::Id.in_subquery(memory_source::made_from(message.id)))
        .all(tx)
        .await?;
    if made.is_empty() {
        return Ok(MemoryEffect::default());
    }
    let shared = list_shared(tx, message).await?;
    let is_shared = |it: &Model| shared.contains(&it.id);
    let is_stored = |it: &Model| it.deleted_at.is_none();
    let locked = space::begin_memory_change(tx, space).await?;
    let version = locked.memory_version;
    if change != MessageChange::Restored {
        let left = name_other_conversations(tx, &made, message, version).await?;
        if change == MessageChange::TextChanged {
            // None of them is restored with the message, because its text is another one.
            let outdated = ids(&made, |it| left.contains(&it.id) || !it.is_kept_by_people());
            let conversation = message.conversation_id;
            other_sources::delete_of_conversation(tx, conversation, Some(outdated)).await?;
        }
        made.retain(|it| !left.contains(&it.id));
    }
    match change {
        MessageChange::Hidden => {
            // A memory that people keep stays if it has another source.
            let is_gone = |it: &Model| !(is_shared(it) && it.is_kept_by_people());
            let gone = ids(&made, |it| is_stored(it) && is_gone(it));
            memory_deletion::mark_deleted(tx, &gone, version, now).await?;
        }
        MessageChange::TextChanged => {
            let stored = ids(&made, |it| is_stored(it) && !it.is_kept_by_people());
            memory_deletion::mark_deleted(tx, &stored, version, now).await?;
        }
        MessageChange::Restored => {
            restore(tx, &made, message, version).await?;
            // The embedding model of the space may have changed while they were deleted.
            embedding_task::request(tx, &locked, now).await?;
            return Ok(MemoryEffect {
                relearned: None,
                version: Some(version),
            });
        }
    }
    let remade = made
        .iter()
        .filter(|it| is_shared(it) && is_stored(it) && !it.is_kept_by_people());
    Ok(MemoryEffect {
        relearned: seqs_of(remade),
        version: Some(version),
    })
}

/// Lets the memories that were also made in another conversation name that conversation, so that they remain.
/// Returns these memories, and those that named another conversation before.
async fn name_other_conversations(
    tx: &impl ConnectionTrait,
    made: &[Model],
    message: &message::Model,
    version: i64,
) -> Result<HashSet<MemoryId>, DbErr> {
    let conversation = message.conversation_id;
    let mut left =
        other_sources::reassign_conversation(tx, conversation, Some(message.id), version).await?;
    let of_others = made
        .iter()
        .filter(|it| it.conversation_id != Some(conversation));
    left.extend(of_others.map(|it| it.id));
    Ok(left)
}

/// Returns the memories of this message that also have another source in its conversation.
async fn list_shared(
    tx: &impl ConnectionTrait,
    message: &message::Model,
) -> Result<HashSet<MemoryId>, DbErr> {
    let of_conversation = other_sources::messages_of(message.conversation_id);
    let shared: Vec<MemoryId> = memory_source::Entity::find()
        .select_only()
        .column(memory_source::Column::MemoryId)
        .filter(memory_source::Column::MessageId.ne(message.id))
        .filter(memory_source::Column::MessageId.in_subquery(of_conversation))
        .filter(memory_source::Column::MemoryId.in_subquery(memory_source::made_from(message.id)))
        .into_tuple()
        .all(tx)
        .await?;
    Ok(shared.into_iter().collect())
}

/// Returns the first and the last `seq` of the messages of these memories.
fn seqs_of<'a>(made: impl Iterator<Item = &'a Model> + Clone) -> Option<(i64, i64)> {
    let from = made.clone().filter_map(|it| it.source_from_seq).min()?;
    let to = made.filter_map(|it| it.source_to_seq).max()?;
    Some((from, to))
}

fn ids(made: &[Model], is_affected: impl Fn(&Model) -> bool) -> Vec<MemoryId> {
    let affected = made.iter().filter(|it| is_affected(it));
    affected.map(|it| it.id).collect()
}

/// Restores deleted memories if the memory may use all of their messages in the conversation, which they name
/// then. If the content was stored again in the meantime, that memory gets the messages as sources.
async fn restore(
    tx: &impl ConnectionTrait,
    made: &[Model],
    message: &message::Model,
    version: i64,
) -> Result<(), DbErr> {
    let conversation = message.conversation_id;
    let mut complete = other_sources::list_complete(tx, message).await?;
    for row in made {
        let Some(own) = complete.remove(&row.id) else {
            continue;
        };
        if row.deleted_at.is_none() {
            if let Some(first) = row.conversation_id.filter(|it| *it != conversation) {
                let restored = (conversation, message.id);
                other_sources::leave_branch(tx, first, restored, version).await?;
            }
            continue;
        }
        let owner = row.space_membership_id;
        let same = memory_store::find_by_content(tx, row.space_id, owner, &row.content).await?;
        if let Some(same) = same {
            other_sources::add_sources(tx, &same, (conversation, own.messages), version).await?;
            continue;
        }
        Entity::update_many()
            .col_expr(Column::DeletedAt, Expr::value(Option::<Timestamp>::None))
            .col_expr(Column::ConversationId, Expr::value(conversation))
            .col_expr(Column::SourceFromSeq, Expr::value(own.from_seq))
            .col_expr(Column::SourceToSeq, Expr::value(own.to_seq))
            .col_expr(Column::SpaceVersion, Expr::value(version))
            .filter(Column::Id.eq(row.id))
            .exec(tx)
            .await?;
    }
    Ok(())
}
