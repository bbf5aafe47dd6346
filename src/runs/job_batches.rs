//! Runs the next batch of a background job: copies messages to a branch, queues its regenerate run,
//! or deletes rows of a conversation or space.
//!
//! **Invariant:** each batch copies or deletes in one transaction, which also saves the cursor
//! under the lease of the job: nothing is written for a job that was canceled or claimed again.
//! Scheduler steps commit separately; they can be repeated.

use std::time::{Duration, Instant};

use base::clock::Timestamp;
use base::ids::{ConversationId, RunId, SpaceId};
use sea_orm::{DatabaseTransaction, DbErr, EntityTrait};
use tokio::task::JoinError;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::jobs::batch_size::{BatchRange, BatchSize};
use crate::conversations::jobs::deletion::DeletedBatch;
use crate::conversations::jobs::job::{JobStatus, StoredJobKind};
use crate::conversations::jobs::{batch_size, deletion, job};
use crate::conversations::{branching, conversation};
use crate::db::backend::Backend;
use crate::memories::summaries::summary_branching::copy_summaries;
use crate::runs::error::EngineError;
use crate::runs::reading::views;
use crate::runs::scheduling::command::{Command, CommandError, VersionRequest};
use crate::runs::scheduling::{scheduler, space_changes};
use crate::runs::services::RunServices;
use crate::runs::store::run;
use crate::spaces::events;

/// A deletion continues with further rows in the same transaction for this long.
const MIN_BATCH_TIME: Duration = Duration::from_millis(2);

/// A committed batch.
#[derive(Debug)]
pub struct JobBatch {
    /// The job after the batch.
    pub job: job::Model,
    /// How long its transaction was open.
    pub elapsed: Duration,
    /// Whether the job is complete.
    pub is_last: bool,
}

/// Why a batch did not commit.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The job was canceled, or claimed again.
    #[error("the job is no longer ours")]
    Conflict,
    /// The job cannot be finished: a code and a message for the user.
    #[error("{1}")]
    Rejected(&'static str, String),
    #[error(transparent)]
    Db(#[from] DbErr),
    #[error("the task of a step ended without a result")]
    TaskEnded(#[from] JoinError),
}

/// Runs the next batch of a job.
///
/// # Errors
/// Returns a [`BatchError`]; nothing was copied or deleted then.
pub async fn run_next(
    context: &RunServices,
    job: &job::Model,
    size: BatchSize,
) -> Result<JobBatch, BatchError> {
    let batch_context = BatchContext {
        context,
        now: context.clock.now(),
        backend: context.db.backend(),
        size,
    };
    let conversation = job.conversation_id.ok_or_else(not_found_error);
    let space = job.space_id.ok_or_else(not_found_error);
    match (job.kind, job.status) {
        (StoredJobKind::Branch | StoredJobKind::RegenerateBranch, JobStatus::Running) => {
            match job.parse_cursor().is_whole {
                false => {
                    batch_context
                        .copy_messages(job.clone(), conversation?)
                        .await
                }
                true => {
                    batch_context
                        .queue_regeneration(job.clone(), conversation?)
                        .await
                }
            }
        }
        // A canceled or failed branch: its copied messages are deleted.
        (StoredJobKind::Branch | StoredJobKind::RegenerateBranch, _)
        | (StoredJobKind::DeleteConversation, _) => {
            batch_context
                .delete_batch(job.clone(), DeletionTarget::Conversation(conversation?))
                .await
        }
        (StoredJobKind::DeleteSpace, _) if !job.parse_cursor().is_closed => {
            batch_context.close_conversations(job.clone(), space?).await
        }
        (StoredJobKind::DeleteSpace, _) => {
            batch_context
                .delete_batch(job.clone(), DeletionTarget::Space(space?))
                .await
        }
    }
}

#[derive(Clone, Copy)]
enum DeletionTarget {
    Conversation(ConversationId),
    Space(SpaceId),
}

struct BatchContext<'a> {
    context: &'a RunServices,
    now: Timestamp,
    backend: Backend,
    size: BatchSize,
}

fn not_found_error() -> BatchError {
    let message = "The conversation of this job no longer exists.";
    BatchError::Rejected("not_found", message.to_owned())
}

fn update_cursor(job: &mut job::Model, change: impl FnOnce(&mut job::JobCursor)) {
    let mut cursor = job.parse_cursor();
    change(&mut cursor);
    job.cursor = serde_json::to_value(cursor).unwrap_or_default();
}

impl BatchContext<'_> {
    /// Copies the next part of the parent's messages; when all are copied, makes the branch
    /// visible.
    async fn copy_messages(
        &self,
        mut job: job::Model,
        branch: ConversationId,
    ) -> Result<JobBatch, BatchError> {
        let db = self.context.db.reader();
        let branch = conversation::Entity::find_by_id(branch).one(db).await?;
        let branch = branch.ok_or_else(not_found_error)?;
        let parent = branch.parent_conversation_id.ok_or_else(not_found_error)?;
        let up_to = branch.last_seq; // the fork point
        let cursor = job.parse_cursor();
        let part = batch_size::next_range(db, parent, (cursor.seq, up_to), self.size).await?;
        let (now, backend) = (self.now, self.backend);
        let work = self.context.db.write(move |tx| {
            Box::pin(async move {
                let began = Instant::now();
                // The lock makes the batch copy each message and its swipes in one consistent
                // state.
                let parent = conversation::lock(tx, parent).await?;
                let parent = parent
                    .filter(|it| !it.is_hidden)
                    .ok_or_else(not_found_error)?;
                let is_whole = part.is_none();
                match part {
                    Some(BatchRange {
                        last_seq: to,
                        n_messages,
                    }) => {
                        let bytes =
                            branching::copy_messages(tx, &parent, branch.id, (cursor.seq, to))
                                .await?;
                        job.n_done += n_messages;
                        update_cursor(&mut job, |it| {
                            it.seq = to;
                            it.text_bytes += bytes;
                        });
                    }
                    None => {
                        branching::make_visible(tx, &parent, &branch, cursor.text_bytes).await?;
                        copy_summaries(tx, &parent, &branch, now).await?;
                        job.n_done = job.n_total;
                        update_cursor(&mut job, |it| it.is_whole = true);
                    }
                }
                let ends = is_whole && job.kind == StoredJobKind::Branch;
                save_progress(tx, &mut job, ends, (now, backend)).await?;
                Ok::<_, BatchError>((job, began, is_whole))
            })
        });
        let (job, began, is_whole) = work.await?;
        let took = began.elapsed();
        if is_whole {
            self.announce_branch(&job).await?;
        }
        let is_last = !job.needs_work;
        Ok(JobBatch {
            job,
            elapsed: took,
            is_last,
        })
    }

    /// Publishes a finished branch, so that it appears in lists.
    async fn announce_branch(&self, job: &job::Model) -> Result<(), DbErr> {
        let (Some(branch), Some(space)) = (job.conversation_id, job.space_id) else {
            return Ok(());
        };
        let view = views::load_conversation(&self.context.db, branch, Viewer::Outsider).await?;
        let event = events::conversation_updated(space, &view);
        self.context.hub.publish(event);
        Ok(())
    }

    /// Queues the run of a branch that was created for a regenerate.
    async fn queue_regeneration(
        &self,
        mut job: job::Model,
        branch: ConversationId,
    ) -> Result<JobBatch, BatchError> {
        let began = Instant::now();
        let run = match run::find_newest(self.context.db.reader(), branch).await? {
            // It was queued, but this or the previous node failed to save the job.
            Some(run) => Ok(run.id),
            None => reply_to_branch_tail(self.context, branch, job.parse_cursor().by).await,
        };
        job.run_id = Some(run.map_err(batch_error)?);
        let (now, backend) = (self.now, self.backend);
        let work = self.context.db.write(move |tx| {
            Box::pin(async move {
                save_progress(tx, &mut job, true, (now, backend)).await?;
                Ok::<_, BatchError>(job)
            })
        });
        Ok(JobBatch {
            job: work.await?,
            elapsed: began.elapsed(),
            is_last: true,
        })
    }

    /// Cancels the runs of a space that is being deleted.
    async fn close_conversations(
        &self,
        mut job: job::Model,
        space: SpaceId,
    ) -> Result<JobBatch, BatchError> {
        let began = Instant::now();
        let live = deletion::list_active_conversations(self.context.db.reader(), space).await?;
        for id in live {
            space_changes::cancel_for_deletion(self.context, id)
                .await
                .map_err(batch_error)?;
        }
        update_cursor(&mut job, |it| it.is_closed = true);
        let (now, backend) = (self.now, self.backend);
        let work = self.context.db.write(move |tx| {
            Box::pin(async move {
                save_progress(tx, &mut job, false, (now, backend)).await?;
                Ok::<_, BatchError>(job)
            })
        });
        Ok(JobBatch {
            job: work.await?,
            elapsed: began.elapsed(),
            is_last: false,
        })
    }

    async fn delete_batch(
        &self,
        mut job: job::Model,
        target: DeletionTarget,
    ) -> Result<JobBatch, BatchError> {
        let (now, backend, size) = (self.now, self.backend, self.size);
        let work = self.context.db.write(move |tx| {
            Box::pin(async move {
                let began = Instant::now();
                let ends = loop {
                    match delete_part(tx, target, size).await? {
                        DeletedBatch::Everything => break true,
                        // One batch of messages already has the adjusted batch size.
                        DeletedBatch::Messages(n) => {
                            job.n_done += n;
                            break false;
                        }
                        DeletedBatch::OtherRows if began.elapsed() >= MIN_BATCH_TIME => {
                            break false;
                        }
                        DeletedBatch::OtherRows => {}
                    }
                };
                save_progress(tx, &mut job, ends, (now, backend)).await?;
                Ok::<_, BatchError>((job, began))
            })
        });
        let (job, began) = work.await?;
        let took = began.elapsed();
        let is_last = !job.needs_work;
        Ok(JobBatch {
            job,
            elapsed: took,
            is_last,
        })
    }
}

/// Saves the progress of the job, or its end.
async fn save_progress(
    tx: &DatabaseTransaction,
    job: &mut job::Model,
    ends: bool,
    (now, backend): (Timestamp, Backend),
) -> Result<(), BatchError> {
    let is_ours = match (ends, job.status) {
        (false, _) => job::save_progress(tx, job, now, backend).await?,
        (true, JobStatus::Running) => {
            let is_ours = job::finish(tx, job, JobStatus::Succeeded, None, now).await?;
            job.status = JobStatus::Succeeded;
            job.finished_at = Some(now);
            job.needs_work = false;
            is_ours
        }
        // The job ended before; only its rows had to be deleted.
        (true, _) => {
            let is_ours = job::save_progress(tx, job, now, backend).await?;
            job::clear_needs_work(tx, job).await?;
            job.needs_work = false;
            is_ours
        }
    };
    match is_ours {
        true => Ok(()),
        false => Err(BatchError::Conflict),
    }
}

async fn delete_part(
    tx: &DatabaseTransaction,
    target: DeletionTarget,
    size: BatchSize,
) -> Result<DeletedBatch, DbErr> {
    match target {
        DeletionTarget::Conversation(id) => delete_conversation_part(tx, id, size).await,
        DeletionTarget::Space(space) => match deletion::find_next_conversation(tx, space).await? {
            None => deletion::delete_space_batch(tx, space, size.max_rows()).await,
            Some(id) => match delete_conversation_part(tx, id, size).await? {
                DeletedBatch::Everything => Ok(DeletedBatch::OtherRows),
                removed => Ok(removed),
            },
        },
    }
}

async fn delete_conversation_part(
    tx: &DatabaseTransaction,
    id: ConversationId,
    size: BatchSize,
) -> Result<DeletedBatch, DbErr> {
    let part = batch_size::next_range(tx, id, (0, i64::MAX), size).await?;
    deletion::delete_batch(tx, id, part.map(|it| it.last_seq), size.max_rows()).await
}

/// Regenerates the message at the end of a branch, or answers the human message there again.
///
/// # Errors
/// Returns the errors of a regenerate, see [`CommandError`].
pub async fn reply_to_branch_tail(
    context: &RunServices,
    branch: ConversationId,
    by: String,
) -> Result<RunId, EngineError> {
    let done = match scheduler::step(context, branch, Command::ReplyToTail).await {
        // The branch ends with the message that is to be regenerated.
        Err(EngineError::Rejected(CommandError::NothingToRegenerate)) => {
            let viewer = Viewer::Server; // the branch was created for one who sees its last message
            let again = Command::Regenerate(VersionRequest {
                instruction: None,
                message: None,
                by,
                viewer,
            });
            scheduler::step(context, branch, again).await?
        }
        done => done?,
    };
    let queued = done.state.queued.map(|it| it.id);
    queued.ok_or(CommandError::NothingToRegenerate.into())
}

fn batch_error(error: EngineError) -> BatchError {
    let code = match error {
        EngineError::Database(error) => return BatchError::Db(error),
        EngineError::TaskEnded(error) => return BatchError::TaskEnded(error),
        EngineError::Rejected(CommandError::NoSpeaker) => "no_speaker",
        EngineError::Rejected(CommandError::SpaceArchived) => "space_archived",
        _ => "nothing_to_regenerate",
    };
    BatchError::Rejected(code, error.to_string())
}
