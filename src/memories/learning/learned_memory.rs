//! Memories that were made from messages, before they are stored.
//!
//! **Invariant:** a memory is stored only if none of its messages has changed since it was read, and if
//! memories may still be made from all of them.

use std::collections::HashSet;

use base::clock::Timestamp;
use base::ids::{MembershipId, MemoryId, MessageId, SpaceId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};

use crate::conversations::{conversation, message};
use crate::memories::memory_settings::MemberSwitches;
use crate::memories::memory_store::{NewMemory, NewSource, PreparedMemory};
use crate::memories::tasks::{memory_task, task_queue};
use crate::memories::{memory_deletion, memory_store};
use crate::spaces::{membership, space};

/// A memory that was made from messages, without hash and embedding.
#[derive(Clone, Debug)]
pub struct DraftMemory {
    memory: NewMemory,
    /// The messages and their versions.
    sources: Vec<(MessageId, i64)>,
    /// The memory that it replaces.
    replaces: Option<MemoryId>,
}

/// A learned memory with its hash and embedding, ready to be stored.
#[derive(Clone, Debug)]
pub struct LearnedMemory {
    memory: PreparedMemory,
    sources: Vec<(MessageId, i64)>,
    replaces: Option<MemoryId>,
}

impl DraftMemory {
    /// Creates a memory from messages of one conversation. Returns `None` without messages.
    pub fn from_messages<'a>(
        memory: NewMemory,
        messages: impl IntoIterator<Item = &'a message::Model>,
        replaces: Option<MemoryId>,
    ) -> Option<Self> {
        let messages: Vec<&message::Model> = messages.into_iter().collect();
        let seqs = || messages.iter().map(|it| it.seq);
        let source = NewSource {
            conversation: messages.first()?.conversation_id,
            from_seq: seqs().min()?,
            to_seq: seqs().max()?,
            messages: messages.iter().map(|it| it.id).collect(),
        };
        Some(Self {
            memory: NewMemory {
                source: Some(source),
                ..memory
            },
            sources: messages.iter().map(|it| (it.id, it.version)).collect(),
            replaces,
        })
    }

    /// Computes hash and embedding, which is CPU work.
    pub fn prepare(self) -> LearnedMemory {
        LearnedMemory {
            memory: PreparedMemory::new(self.memory),
            sources: self.sources,
            replaces: self.replaces,
        }
    }
}

/// The effect of a task that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedTask {
    /// The first version of the space's memories that new, changed and replaced memories get; `None` if
    /// nothing was stored.
    pub version: Option<i64>,
}

/// Ends a task and stores its memories. Returns `None` if another worker has claimed it; then nothing is
/// stored.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn store(
    tx: &impl ConnectionTrait,
    task: &memory_task::Model,
    memories: Vec<LearnedMemory>,
    now: Timestamp,
) -> Result<Option<EndedTask>, DbErr> {
    // Locked, so that a later change of a message finds the memories stored here.
    let row = match task.conversation_id {
        Some(id) => conversation::lock(tx, id).await?,
        None => None,
    };
    if !task_queue::finish(tx, task).await? {
        return Ok(None);
    }
    if memories.is_empty() || row.is_none_or(|it| it.is_hidden) {
        return Ok(Some(EndedTask::default()));
    }
    // Locked before the members are read, so that none is switched off in between.
    space::lock(tx, task.space_id).await?;
    let memories = drop_outdated(tx, task.space_id, memories).await?;
    let replacements: Vec<(String, MemoryId)> = memories
        .iter()
        .filter_map(|it| Some((it.memory.content_hash().to_owned(), it.replaces?)))
        .collect();
    let memories = memories.into_iter().map(|it| it.memory).collect();
    let stored = memory_store::insert(tx, task.space_id, memories, now).await?;
    // A memory that already existed replaces nothing; it may be the same memory that is named.
    let is_stored = |hash: &str| stored.new.iter().any(|it| it.content_hash == hash);
    let replaced = replacements.iter().filter(|(hash, _)| is_stored(hash));
    let replaced: Vec<MemoryId> = replaced.map(|(_, id)| *id).collect();
    memory_deletion::delete_replaced(tx, task.space_id, &replaced, now).await?;
    Ok(Some(EndedTask {
        version: stored.version,
    }))
}

/// Removes the memories whose messages have changed since they were read: a message was edited or deleted, or
/// the memory was switched off for a message or for its author.
async fn drop_outdated(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    memories: Vec<LearnedMemory>,
) -> Result<Vec<LearnedMemory>, DbErr> {
    let sources = memories.iter().flat_map(|it| &it.sources);
    let mut ids: Vec<MessageId> = sources.map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    let current: Vec<(MessageId, i64, MembershipId)> = message::Entity::find()
        .select_only()
        .columns([
            message::Column::Id,
            message::Column::Version,
            message::Column::SpaceMembershipId,
        ])
        .filter(message::Column::Id.is_in(ids))
        .filter(message::is_usable_by_memory())
        .into_tuple()
        .all(tx)
        .await?;
    let authors = current.iter().map(|(_, _, author)| *author);
    let authors = membership::load_missing(tx, space, &[], authors).await?;
    let learned = current
        .into_iter()
        .filter(|(_, _, author)| MemberSwitches::of(&authors, *author).learn);
    let learned: HashSet<(MessageId, i64)> = learned.map(|it| (it.0, it.1)).collect();
    let is_current = |it: &LearnedMemory| it.sources.iter().all(|it| learned.contains(it));
    Ok(memories.into_iter().filter(is_current).collect())
}
