//! Learns from the messages of a conversation: claims a task, makes memories from its messages, and
//! stores them together with the end of the task.
//!
//! Without a model, a message that says something about a person becomes a memory as it is.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Clock;
use base::ids::{ConversationId, MessageId, SpaceId};
use llm::demo::model::NOTICE;
use recall::snippet::snippet;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};

use crate::conversations::message::{MessageRole, Visibility};
use crate::conversations::{conversation, message};
use crate::db::backend::StaleAfter;
use crate::db::connect::Db;
use crate::memories::error::MemoryError;
use crate::memories::learning::memory_task;
use crate::memories::learning::memory_task::MemoryTaskKind;
use crate::memories::memory::{MemoryKind, MemoryOrigin};
use crate::memories::memory_settings::MemorySettings;
use crate::memories::memory_store;
use crate::memories::memory_store::{NewMemory, NewSource, PreparedMemory};
use crate::memories::models::memory_models::MemoryModels;
use crate::spaces::membership::Model as Membership;
use crate::spaces::{membership, space};

/// So many messages are learned from at once; older ones are left out.
const MAX_MESSAGES: u64 = 256;
/// The importance of a message as it was.
const SNIPPET_IMPORTANCE: f64 = 0.3;

/// A memory that was made from a message of this version.
#[derive(Clone, Debug)]
struct LearnedMemory {
    message: MessageId,
    message_version: i64,
    memory: PreparedMemory,
}

/// What learning needs. Cheap to clone.
#[derive(Clone)]
pub struct LearningServices {
    pub db: Db,
    pub clock: Clock,
    pub models: MemoryModels,
    /// The name of this node, which holds the leases.
    pub node: Arc<str>,
    pub heartbeat: Duration,
    /// A task without a heartbeat for this long is claimed again.
    pub stale_after: Duration,
}

impl LearningServices {
    /// Returns the rule for stale heartbeats.
    pub fn stale(&self) -> StaleAfter {
        StaleAfter {
            after_ms: i64::try_from(self.stale_after.as_millis()).unwrap_or(i64::MAX),
            backend: self.db.backend(),
        }
    }

    /// Claims a task. Returns `None` if another worker was faster, or if there is nothing to learn
    /// from; such a task is deleted.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn claim(
        &self,
        task: memory_task::Model,
    ) -> Result<Option<memory_task::Model>, DbErr> {
        let (now, node, stale) = (self.clock.now(), self.node.clone(), self.stale());
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let learns = task.kind == MemoryTaskKind::Extract;
                    let seqs = match learns {
                        true => find_messages(tx, &task).await?,
                        false => Some((0, 0)),
                    };
                    let range = seqs.unwrap_or((0, 0));
                    let claimed = memory_task::claim(tx, &task, range, &node, now, &stale).await?;
                    let Some(claimed) = claimed else {
                        return Ok(None);
                    };
                    if learns && task.from_seq.is_none() {
                        clear_unlearned(tx, &task).await?;
                    }
                    if seqs.is_none() {
                        memory_task::finish(tx, &claimed).await?;
                        return Ok(None);
                    }
                    Ok(Some(claimed))
                })
            })
            .await
    }

    /// Learns from the messages of a claimed task, and ends the task.
    ///
    /// # Errors
    /// Returns the database's error, or `TaskEnded`; then nothing was stored.
    pub async fn learn(&self, task: memory_task::Model) -> Result<(), MemoryError> {
        let memories = self.make_memories(&task).await?;
        let now = self.clock.now();
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let memories = drop_outdated(tx, &task, memories).await?;
                    if memory_task::finish(tx, &task).await? {
                        memory_store::insert(tx, task.space_id, memories, now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Ends a failed attempt of a task.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn fail(&self, task: memory_task::Model, error: String) -> Result<(), DbErr> {
        let now = self.clock.now();
        self.db
            .write(move |tx| {
                Box::pin(async move { memory_task::fail(tx, &task, &error, now).await })
            })
            .await
    }

    async fn make_memories(
        &self,
        task: &memory_task::Model,
    ) -> Result<Vec<LearnedMemory>, MemoryError> {
        let db = self.db.reader();
        let (Some(id), Some(from), Some(to)) = (task.conversation_id, task.from_seq, task.to_seq)
        else {
            return Ok(Vec::new());
        };
        if !learns(db, task.space_id, id).await? {
            return Ok(Vec::new());
        }
        let messages = load_messages(db, id, (from, to)).await?;
        let members = membership::list_for_space(db, task.space_id).await?;
        // Embedding a batch is CPU work, which must not block streams.
        let work = move || {
            let learned = messages.iter().filter_map(|it| {
                Some(LearnedMemory {
                    message: it.id,
                    message_version: it.version,
                    memory: PreparedMemory::new(to_snippet(it, &members)?),
                })
            });
            learned.collect()
        };
        Ok(tokio::task::spawn_blocking(work).await?)
    }
}

/// Returns the messages of a task that is being claimed, and locks their conversation. Returns `None`
/// if there are none.
async fn find_messages(
    tx: &impl ConnectionTrait,
    task: &memory_task::Model,
) -> Result<Option<(i64, i64)>, DbErr> {
    // Its messages are known if it was claimed before, or is for one edited message.
    if let (Some(from), Some(to)) = (task.from_seq, task.to_seq) {
        return Ok(Some((from, to)));
    }
    let Some(id) = task.conversation_id else {
        return Ok(None);
    };
    let row = conversation::lock(tx, id).await?;
    let range = row.and_then(|it| Some((it.unlearned_from_seq?, it.last_seq)));
    Ok(range.filter(|(from, last)| from <= last))
}

/// Records that a claimed task has all messages of its locked conversation.
async fn clear_unlearned(
    tx: &impl ConnectionTrait,
    task: &memory_task::Model,
) -> Result<(), DbErr> {
    let Some(id) = task.conversation_id else {
        return Ok(());
    };
    conversation::Entity::update_many()
        .col_expr(
            conversation::Column::UnlearnedFromSeq,
            Expr::value(Option::<i64>::None),
        )
        .filter(conversation::Column::Id.eq(id))
        .exec(tx)
        .await
        .map(drop)
}

/// Removes the memories whose messages were edited or deleted after they were read. Locks the
/// conversation, so that a later change finds what is stored here.
async fn drop_outdated(
    tx: &impl ConnectionTrait,
    task: &memory_task::Model,
    memories: Vec<LearnedMemory>,
) -> Result<Vec<PreparedMemory>, DbErr> {
    if let Some(id) = task.conversation_id {
        conversation::lock(tx, id).await?;
    }
    let ids = memories.iter().map(|it| it.message);
    let current: Vec<(MessageId, i64)> = message::Entity::find()
        .select_only()
        .columns([message::Column::Id, message::Column::Version])
        .filter(message::Column::Id.is_in(ids))
        .filter(message::Column::Visibility.eq(Visibility::Normal))
        .into_tuple()
        .all(tx)
        .await?;
    let is_current = |it: &LearnedMemory| current.contains(&(it.message, it.message_version));
    let memories = memories.into_iter().filter(is_current);
    Ok(memories.map(|it| it.memory).collect())
}

/// Returns whether the space still learns, and the conversation is not being deleted.
async fn learns(
    db: &impl ConnectionTrait,
    space: SpaceId,
    conversation: ConversationId,
) -> Result<bool, DbErr> {
    let space = space::find_visible(db, space).await?;
    let learns = space.is_some_and(|it| MemorySettings::of_space(&it.settings).learns());
    Ok(learns
        && conversation::find_visible(db, conversation)
            .await?
            .is_some())
}

/// Returns the messages of people and the replies of characters in a range, ascending. Greetings are
/// texts of cards, and are left out.
async fn load_messages(
    db: &impl ConnectionTrait,
    id: ConversationId,
    (from, to): (i64, i64),
) -> Result<Vec<message::Model>, DbErr> {
    let of_person = message::Column::Role.eq(MessageRole::User);
    let is_reply = message::Column::Role
        .eq(MessageRole::Assistant)
        .and(message::Column::ConversationRunId.is_not_null());
    let mut messages = message::Entity::find()
        .filter(message::Column::ConversationId.eq(id))
        .filter(message::Column::Seq.between(from, to))
        .filter(message::Column::Visibility.eq(Visibility::Normal))
        .filter(of_person.or(is_reply))
        .order_by_desc(message::Column::Seq)
        .limit(MAX_MESSAGES)
        .all(db)
        .await?;
    messages.reverse();
    Ok(messages)
}

fn to_snippet(message: &message::Model, members: &[Membership]) -> Option<NewMemory> {
    let author = members
        .iter()
        .find(|it| it.id == message.space_membership_id)?;
    let names = members.iter().map(|it| it.cached_display_name.as_str());
    // The notice of the demo model, which precedes its first reply, is about nobody.
    let text = message.content.rsplit(NOTICE).next()?;
    let content = snippet(&author.cached_display_name, text, names)?;
    Some(NewMemory {
        owner: None,
        about: Some(author.id),
        source: Some(NewSource {
            conversation: message.conversation_id,
            from_seq: message.seq,
            to_seq: message.seq,
            messages: vec![message.id],
        }),
        kind: MemoryKind::Snippet,
        origin: MemoryOrigin::Snippet,
        content,
        importance: SNIPPET_IMPORTANCE,
        is_pinned: false,
        created_by: None,
    })
}
