//! Deletes conversations and spaces: small ones in one transaction, large ones in a background job.

use base::ids::{ConversationId, SpaceId, UserId};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait};

use crate::conversations::conversation;
use crate::conversations::jobs::deletion::HiddenConversation;
use crate::conversations::jobs::job::{JobCursor, NewJob, StoredJobKind};
use crate::conversations::jobs::{deletion, job};
use crate::memories::memory_deletion;
use crate::runs::background_jobs;
use crate::runs::background_jobs::JobTask;
use crate::runs::engine::RunEngine;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::Command;
use crate::runs::store::run::RunCancelReason;
use crate::spaces::{copilot_steps, lifecycle, membership};

/// If there are more messages, the request does not wait for its job.
pub const MAX_WAITED_MESSAGES: i64 = 2_000;
/// The most that is deleted in one transaction, without a job.
pub const MAX_SHORT_MESSAGES: i64 = 200;
pub const MAX_SHORT_BYTES: i64 = 256 * 1024;
const MAX_SHORT_CONVERSATIONS: i64 = 20;

/// A deleted or hidden conversation or space.
#[derive(Debug)]
pub struct Deletion {
    /// The memberships whose copilot was on in the deleted conversation.
    pub copilots: Vec<membership::Model>,
    /// The task of the background job, if there is one.
    task: Option<JobTask>,
}

impl RunEngine {
    /// Deletes a conversation. Returns `None` if it has branches or threads, or does not
    /// exist.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn delete_conversation(
        &self,
        id: ConversationId,
        user: UserId,
    ) -> Result<Option<Deletion>, EngineError> {
        self.candidates.cancel_matching(|it| it.conversation == id);
        // Close it while it has subscribers, so that they get the end of its run.
        self.step(id, Command::SpaceClosed(RunCancelReason::Deleted))
            .await?;
        let db = self.context.db.reader();
        let Some(row) = conversation::Entity::find_by_id(id).one(db).await? else {
            return Ok(None);
        };
        if row.last_seq <= MAX_SHORT_MESSAGES && row.text_bytes <= MAX_SHORT_BYTES {
            let deleted = self
                .context
                .db
                .write(move |tx| Box::pin(async move { delete_with_memories(tx, id).await }));
            let copilots: Result<Option<Vec<membership::Model>>, DbErr> = deleted.await;
            return Ok(copilots?.map(|copilots| Deletion {
                copilots,
                task: None,
            }));
        }
        let n_total = deletion::count_messages(db, id, row.last_seq).await?;
        let new = self.new_job(StoredJobKind::DeleteConversation, Some(user), n_total);
        let hidden = self
            .context
            .db
            .write(move |tx| Box::pin(async move { hide_with_memories(tx, id, new).await }));
        let hidden: Result<Option<HiddenConversation>, DbErr> = hidden.await;
        Ok(hidden?.map(|it| Deletion {
            copilots: it.copilots,
            task: Some(background_jobs::start(&self.context, it.job)),
        }))
    }

    /// Deletes a space with all its conversations. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn delete_space(
        &self,
        id: SpaceId,
        user: UserId,
    ) -> Result<Option<Deletion>, EngineError> {
        self.candidates.cancel_matching(|it| it.space == id);
        let size = deletion::measure_space(self.context.db.reader(), id).await?;
        let is_short = size.n_messages <= MAX_SHORT_MESSAGES
            && size.text_bytes <= MAX_SHORT_BYTES
            && size.n_conversations <= MAX_SHORT_CONVERSATIONS;
        if is_short {
            self.space_closed(id, RunCancelReason::Deleted).await?;
            let is_deleted = lifecycle::delete(&self.context.db, id).await?;
            return Ok(is_deleted.then_some(Deletion {
                copilots: Vec::new(),
                task: None,
            }));
        }
        let new = self.new_job(StoredJobKind::DeleteSpace, Some(user), size.n_messages);
        let hidden = deletion::hide_space(&self.context.db, id, new).await?;
        Ok(hidden.map(|job| Deletion {
            copilots: Vec::new(),
            task: Some(background_jobs::start(&self.context, job)),
        }))
    }

    /// Waits for a deletion of up to 2,000 messages. Returns the job if it is not finished.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn wait_for_deletion(&self, deletion: Deletion) -> Result<Option<job::Model>, DbErr> {
        match deletion.task {
            None => Ok(None),
            Some(work) if work.job.n_total > MAX_WAITED_MESSAGES => Ok(Some(work.job)),
            Some(work) => {
                let job = work.wait_until_finished(&self.context).await?;
                Ok(job.filter(|it| it.status == job::JobStatus::Running))
            }
        }
    }

    /// Returns the values of a job that this node is about to start.
    pub(super) fn new_job(
        &self,
        kind: StoredJobKind,
        user: Option<UserId>,
        n_total: i64,
    ) -> NewJob {
        NewJob {
            kind,
            user,
            n_total,
            cursor: JobCursor::default(),
            worker: self.context.node.to_string(),
            now: self.context.clock.now(),
            backend: self.context.db.backend(),
        }
    }
}

/// Deletes a conversation with everything in it. Returns the memberships whose copilot was bound to
/// it; `None` if it has a branch or thread by now.
async fn delete_with_memories(
    tx: &impl ConnectionTrait,
    id: ConversationId,
) -> Result<Option<Vec<membership::Model>>, DbErr> {
    // A concurrent creation of a branch or thread waits for the lock and then finds no parent.
    let row = conversation::lock(tx, id).await?;
    if conversation::count_children(tx, id).await? > 0 {
        return Ok(None);
    }
    if let Some(row) = row {
        memory_deletion::keep_shared_memories(tx, &row).await?;
        conversation::delete_row(tx, &row).await?;
    }
    copilot_steps::disable_copilots_in(tx, id).await.map(Some)
}

/// Hides a conversation and inserts the job that deletes it. Returns `None` if it does not exist or has
/// branches or threads.
async fn hide_with_memories(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    new: NewJob,
) -> Result<Option<HiddenConversation>, DbErr> {
    // A concurrent creation of a branch or thread waits for the lock.
    let Some(row) = conversation::lock(tx, id).await? else {
        return Ok(None);
    };
    if row.is_hidden || conversation::count_children(tx, id).await? > 0 {
        return Ok(None);
    }
    memory_deletion::hide_memories(tx, &row, new.now).await?;
    deletion::hide_conversation(tx, &row, new).await.map(Some)
}
