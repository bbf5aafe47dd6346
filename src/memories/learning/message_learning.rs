//! Learns from the messages of a conversation: claims a task, makes memories from its messages, with
//! the model of the space if it has one, and stores them in the transaction that ends the task.

use std::sync::Arc;
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::ids::ConversationId;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select,
};
use tokio_util::sync::CancellationToken;

use crate::conversations::message::MessageRole;
use crate::conversations::{conversation, message};
use crate::db::backend::StaleAfter;
use crate::db::connect::Db;
use crate::memories::error::MemoryError;
use crate::memories::events::memory_announcer::MemoryAnnouncer;
use crate::memories::index_cache::MemoryIndexes;
use crate::memories::learning::extraction::{Extraction, NewMessages};
use crate::memories::learning::learned_memory::{DraftMemory, EndedTask, LearnedMemory};
use crate::memories::learning::{learned_memory, snippets};
use crate::memories::memory_settings::{MemberSwitches, MemorySettings};
use crate::memories::models::memory_models::MemoryModels;
use crate::memories::models::model_setting::MemoryModelSetting;
use crate::memories::tasks::memory_task::MemoryTaskKind;
use crate::memories::tasks::{learning_task, memory_task, task_queue};
use crate::spaces::{membership, space};

/// The maximum number of messages that one task learns from; older ones are left out.
pub const MAX_MESSAGES: i64 = 256;

/// What learning needs. Cheap to clone.
#[derive(Clone)]
pub struct LearningServices {
    pub db: Db,
    pub clock: Clock,
    pub models: MemoryModels,
    pub indexes: MemoryIndexes,
    /// Announces learned memories and new summaries.
    pub events: MemoryAnnouncer,
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

    /// Claims a task. Returns `None` if another worker was faster, if the task has failed, or if
    /// there is nothing to learn from; in the last case, the task is deleted.
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
                        false => None,
                    };
                    let claimed = task_queue::claim(tx, &task, seqs, &node, now, &stale).await?;
                    let Some(claimed) = claimed else {
                        return Ok(None);
                    };
                    if learns && task.from_seq.is_none() {
                        clear_unlearned(tx, &task, now).await?;
                    }
                    if learns && seqs.is_none() {
                        task_queue::finish(tx, &claimed).await?;
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
    /// Returns the database's error, `TaskEnded`, or `Canceled` if `cancel` fired; then nothing was
    /// stored.
    pub async fn learn(
        &self,
        task: memory_task::Model,
        cancel: &CancellationToken,
    ) -> Result<(), MemoryError> {
        let (memories, n_dropped) = match self.read(&task).await? {
            Some((new, n_dropped)) => (self.make_memories(new, cancel).await?, n_dropped),
            None => (Vec::new(), 0),
        };
        let (space, now) = (task.space_id, self.clock.now());
        let ended = self.db.write(move |tx| {
            Box::pin(async move { learned_memory::store(tx, &task, memories, now).await })
        });
        let ended: Result<Option<EndedTask>, DbErr> = ended.await;
        let Some(ended) = ended? else {
            return Ok(());
        };
        if let Some(version) = ended.version {
            self.events.memories_changed(space, version);
        }
        self.indexes.metrics.dropped.inc_by(n_dropped);
        Ok(())
    }

    /// Ends a failed attempt of a task.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn fail(&self, task: memory_task::Model, error: String) -> Result<(), DbErr> {
        let now = self.clock.now();
        self.db
            .write(move |tx| {
                Box::pin(async move { task_queue::fail(tx, &task, &error, now).await })
            })
            .await
    }

    /// Reads the messages of a task, and counts the older ones that were left out because of
    /// [`MAX_MESSAGES`]. Returns `None` if there are none, or if they are no longer learned from.
    async fn read(&self, task: &memory_task::Model) -> Result<Option<(NewMessages, u64)>, DbErr> {
        let db = self.db.reader();
        let (Some(id), Some(from), Some(to)) = (task.conversation_id, task.from_seq, task.to_seq)
        else {
            return Ok(None);
        };
        let space = space::find_visible(db, task.space_id).await?;
        let conversation = conversation::find_visible(db, id).await?;
        let (Some(space), Some(conversation)) = (space, conversation) else {
            return Ok(None);
        };
        if !MemorySettings::of_space(&space.settings).learns() {
            return Ok(None);
        }
        let members = membership::list_for_space(db, space.id).await?;
        let (mut messages, n_dropped) = load_messages(db, id, (from, to)).await?;
        messages.retain(|it| MemberSwitches::of(&members, it.space_membership_id).learn);
        if messages.is_empty() {
            return Ok(None);
        }
        let new = NewMessages {
            members,
            space,
            conversation,
            messages,
        };
        Ok(Some((new, n_dropped)))
    }

    async fn make_memories(
        &self,
        new: NewMessages,
        cancel: &CancellationToken,
    ) -> Result<Vec<LearnedMemory>, MemoryError> {
        let setting = MemoryModelSetting::from_json(&new.space.settings["memory"]["model"]);
        let model = self.models.find_model(&new.space, setting.as_ref()).await?;
        let drafts = match &model {
            Some(model) => {
                let extraction = Extraction {
                    db: &self.db,
                    indexes: &self.indexes,
                    models: &self.models,
                    model,
                    cancel,
                };
                extraction.make(&new).await?
            }
            None => snippets::make(&new.messages, &new.members),
        };
        // Embedding is CPU work, which must not block streams.
        let prepare = move || drafts.into_iter().map(DraftMemory::prepare).collect();
        Ok(tokio::task::spawn_blocking(prepare).await?)
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

/// Records that a claimed task has all messages of its locked conversation that were not learned from, except
/// those of failed tasks. Queues the failed tasks again.
async fn clear_unlearned(
    tx: &impl ConnectionTrait,
    task: &memory_task::Model,
    now: Timestamp,
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
        .await?;
    learning_task::retry_failed(tx, id, now).await
}

/// Returns the `seq` at which the newest [`MAX_MESSAGES`] messages of a range begin.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_start_of_newest(
    db: &impl ConnectionTrait,
    id: ConversationId,
    range: (i64, i64),
) -> Result<i64, DbErr> {
    let start: Option<i64> = select_messages(id, range)
        .select_only()
        .column(message::Column::Seq)
        .order_by_desc(message::Column::Seq)
        .offset(MAX_MESSAGES.unsigned_abs() - 1)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?;
    Ok(start.unwrap_or(range.0))
}

/// Returns the messages of a range that are learned from, ascending, and the number of older ones that were
/// left out because of [`MAX_MESSAGES`].
async fn load_messages(
    db: &impl ConnectionTrait,
    id: ConversationId,
    range: (i64, i64),
) -> Result<(Vec<message::Model>, u64), DbErr> {
    let found = select_messages(id, range);
    let newest = found.clone().order_by_desc(message::Column::Seq);
    let max = MAX_MESSAGES.unsigned_abs();
    let mut messages = newest.limit(max).all(db).await?;
    messages.reverse();
    let n_dropped = match messages.len() as u64 == max {
        true => found.count(db).await?.saturating_sub(max),
        false => 0,
    };
    Ok((messages, n_dropped))
}

/// Selects the messages of people and the replies of characters in a range. Greetings are texts of cards,
/// and are left out.
fn select_messages(id: ConversationId, (from, to): (i64, i64)) -> Select<message::Entity> {
    let of_person = message::Column::Role.eq(MessageRole::User);
    let is_reply = message::Column::Role
        .eq(MessageRole::Assistant)
        .and(message::Column::ConversationRunId.is_not_null());
    message::Entity::find()
        .filter(message::Column::ConversationId.eq(id))
        .filter(message::Column::Seq.between(from, to))
        .filter(message::is_usable_by_memory())
        .filter(of_person.or(is_reply))
}
