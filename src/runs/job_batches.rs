//! The batches of each kind of job.
//!
//! **Invariant:** a batch is one transaction that also saves the cursor, and it begins by renewing the
//! lease of the job: nothing is written for a job that was canceled or that another node has.

use crate::clock::Timestamp;
use crate::conversations::batch_size;
use crate::conversations::batch_size::BatchRange;
use crate::conversations::batch_size::BatchSize;
use crate::conversations::branching;
use crate::conversations::conversation;
use crate::conversations::deletion;
use crate::conversations::deletion::DeletedBatch;
use crate::conversations::job;
use crate::conversations::job::JobStatus;
use crate::conversations::job::StoredJobKind;
use crate::db::connect::Backend;
use crate::ids::ConversationId;
use crate::ids::RunId;
use crate::ids::SpaceId;
use crate::runs::command::Command;
use crate::runs::command::Refusal;
use crate::runs::context::Context;
use crate::runs::engine::Engine;
use crate::runs::error::EngineError;
use crate::runs::run;
use crate::runs::scheduler;
use crate::spaces::events;
use sea_orm::ColumnTrait;
use sea_orm::DatabaseTransaction;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use std::time::Duration;
use std::time::Instant;

/// A deletion goes on with more rows of the same transaction for so long.
const FILL: Duration = Duration::from_millis(2);

/// A batch that committed.
#[derive(Debug)]
pub struct Batch {
    /// The job as it is now.
    pub job: job::Model,
    /// How long its transaction was open.
    pub took: Duration,
    /// Nothing is left to do.
    pub is_last: bool,
}

/// Why a batch did not commit.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The job was canceled, or another node has it.
    #[error("the job is no longer ours")]
    Lost,
    /// The job cannot be finished: a code and a sentence for a person.
    #[error("{1}")]
    Refused(&'static str, String),
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Does the next batch of a job.
///
/// # Errors
/// [`BatchError`]; nothing was changed then.
pub async fn next(
    context: &Context,
    job: &job::Model,
    size: BatchSize,
) -> Result<Batch, BatchError> {
    let hand = Hand {
        context,
        now: context.clock.now(),
        dialect: context.db.backend(),
        size,
    };
    let conversation = job.conversation_id.ok_or_else(gone);
    let space = job.space_id.ok_or_else(gone);
    match (job.kind, job.status) {
        (StoredJobKind::Branch | StoredJobKind::RegenerateBranch, JobStatus::Running) => {
            match job.parse_cursor().is_whole {
                false => hand.copy(job.clone(), conversation?).await,
                true => hand.regenerate(job.clone(), conversation?).await,
            }
        }
        // Canceled or failed: what it had copied is deleted.
        (StoredJobKind::Branch | StoredJobKind::RegenerateBranch, _)
        | (StoredJobKind::DeleteConversation, _) => {
            hand.delete(job.clone(), Target::Conversation(conversation?))
                .await
        }
        (StoredJobKind::DeleteSpace, _) if !job.parse_cursor().is_closed => {
            hand.close(job.clone(), space?).await
        }
        (StoredJobKind::DeleteSpace, _) => hand.delete(job.clone(), Target::Space(space?)).await,
    }
}

#[derive(Clone, Copy)]
enum Target {
    Conversation(ConversationId),
    Space(SpaceId),
}

struct Hand<'a> {
    context: &'a Context,
    now: Timestamp,
    dialect: Backend,
    size: BatchSize,
}

fn gone() -> BatchError {
    let message = "The conversation that it worked on is gone.";
    BatchError::Refused("not_found", message.to_owned())
}

fn with_cursor(job: &mut job::Model, change: impl FnOnce(&mut job::JobCursor)) {
    let mut cursor = job.parse_cursor();
    change(&mut cursor);
    job.cursor = serde_json::to_value(cursor).unwrap_or_default();
}

impl Hand<'_> {
    /// Copies the next part of the parent, or shows the branch when there is none.
    async fn copy(&self, mut job: job::Model, branch: ConversationId) -> Result<Batch, BatchError> {
        let db = self.context.db.reader();
        let branch = conversation::Entity::find_by_id(branch).one(db).await?;
        let branch = branch.ok_or_else(gone)?;
        let parent = branch.parent_conversation_id.ok_or_else(gone)?;
        let up_to = branch.last_seq; // of the fork point
        let cursor = job.parse_cursor();
        let part = batch_size::next_range(db, parent, (cursor.seq, up_to), self.size).await?;
        let (now, dialect) = (self.now, self.dialect);
        let work = self.context.db.write(move |tx| {
            Box::pin(async move {
                let began = Instant::now();
                // Each message and its texts are copied as they are at one instant.
                let parent = conversation::lock(tx, parent).await?;
                let parent = parent.filter(|it| !it.is_hidden).ok_or_else(gone)?;
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
                        with_cursor(&mut job, |it| {
                            it.seq = to;
                            it.text_bytes += bytes;
                        });
                    }
                    None => {
                        branching::make_visible(tx, &parent, &branch, cursor.text_bytes).await?;
                        job.n_done = job.n_total;
                        with_cursor(&mut job, |it| it.is_whole = true);
                    }
                }
                let ends = is_whole && job.kind == StoredJobKind::Branch;
                save(tx, &mut job, ends, (now, dialect)).await?;
                Ok::<_, BatchError>((job, began, is_whole))
            })
        });
        let (job, began, is_whole) = work.await?;
        let took = began.elapsed();
        if is_whole {
            self.announce_branch(&job).await?;
        }
        let is_last = !job.needs_work;
        Ok(Batch { job, took, is_last })
    }

    /// A branch that is whole appears in the lists.
    async fn announce_branch(&self, job: &job::Model) -> Result<(), DbErr> {
        let (Some(branch), Some(space)) = (job.conversation_id, job.space_id) else {
            return Ok(());
        };
        let engine = Engine::new(self.context.clone());
        let view = engine.conversation(branch).await?;
        let event = events::conversation_updated(space, &view);
        self.context.hub.publish(event);
        Ok(())
    }

    /// Queues the run of a branch that was made for it.
    async fn regenerate(
        &self,
        mut job: job::Model,
        branch: ConversationId,
    ) -> Result<Batch, BatchError> {
        let began = Instant::now();
        let run = match newest_run(self.context, branch).await? {
            // Queued before this node, or the one before, could save it.
            Some(run) => Ok(run),
            None => answer_again(self.context, branch, job.parse_cursor().by).await,
        };
        job.run_id = Some(run.map_err(refused)?);
        let (now, dialect) = (self.now, self.dialect);
        let work = self.context.db.write(move |tx| {
            Box::pin(async move {
                save(tx, &mut job, true, (now, dialect)).await?;
                Ok::<_, BatchError>(job)
            })
        });
        Ok(Batch {
            job: work.await?,
            took: began.elapsed(),
            is_last: true,
        })
    }

    /// Cancels what runs in a space that is being deleted.
    async fn close(&self, mut job: job::Model, space: SpaceId) -> Result<Batch, BatchError> {
        let began = Instant::now();
        let live = deletion::list_active_conversations(self.context.db.reader(), space).await?;
        let closed = Command::Closed(run::RunCancelReason::Deleted);
        for id in live {
            match scheduler::step(self.context, id, closed.clone()).await {
                Ok(_) | Err(EngineError::Lost | EngineError::Refused(_)) => {}
                Err(EngineError::Database(error)) => return Err(error.into()),
                Err(_) => {}
            }
        }
        with_cursor(&mut job, |it| it.is_closed = true);
        let (now, dialect) = (self.now, self.dialect);
        let work = self.context.db.write(move |tx| {
            Box::pin(async move {
                save(tx, &mut job, false, (now, dialect)).await?;
                Ok::<_, BatchError>(job)
            })
        });
        Ok(Batch {
            job: work.await?,
            took: began.elapsed(),
            is_last: false,
        })
    }

    async fn delete(&self, mut job: job::Model, target: Target) -> Result<Batch, BatchError> {
        let (now, dialect, size) = (self.now, self.dialect, self.size);
        let work = self.context.db.write(move |tx| {
            Box::pin(async move {
                let began = Instant::now();
                let ends = loop {
                    match delete_some(tx, target, size).await? {
                        DeletedBatch::Everything => break true,
                        // A batch of messages has the size that was measured.
                        DeletedBatch::Messages(n) => {
                            job.n_done += n;
                            break false;
                        }
                        DeletedBatch::OtherRows if began.elapsed() >= FILL => break false,
                        DeletedBatch::OtherRows => {}
                    }
                };
                save(tx, &mut job, ends, (now, dialect)).await?;
                Ok::<_, BatchError>((job, began))
            })
        });
        let (job, began) = work.await?;
        let took = began.elapsed();
        let is_last = !job.needs_work;
        Ok(Batch { job, took, is_last })
    }
}

/// Saves how far the job is, or that it ended.
async fn save(
    tx: &DatabaseTransaction,
    job: &mut job::Model,
    ends: bool,
    (now, dialect): (Timestamp, Backend),
) -> Result<(), BatchError> {
    let is_ours = match (ends, job.status) {
        (false, _) => job::heartbeat(tx, job, now, dialect).await?,
        (true, JobStatus::Running) => {
            let is_ours = job::finish(tx, job, JobStatus::Succeeded, None, now).await?;
            job.status = JobStatus::Succeeded;
            job.finished_at = Some(now);
            job.needs_work = false;
            is_ours
        }
        // It ended before; only its remains were left.
        (true, _) => {
            let is_ours = job::heartbeat(tx, job, now, dialect).await?;
            job::clear_needs_work(tx, job.id).await?;
            job.needs_work = false;
            is_ours
        }
    };
    match is_ours {
        true => Ok(()),
        false => Err(BatchError::Lost),
    }
}

async fn delete_some(
    tx: &DatabaseTransaction,
    target: Target,
    size: BatchSize,
) -> Result<DeletedBatch, DbErr> {
    match target {
        Target::Conversation(id) => delete_some_of(tx, id, size).await,
        Target::Space(space) => match deletion::find_next_conversation(tx, space).await? {
            None => deletion::delete_space_batch(tx, space, size.max_rows()).await,
            Some(id) => match delete_some_of(tx, id, size).await? {
                DeletedBatch::Everything => Ok(DeletedBatch::OtherRows),
                removed => Ok(removed),
            },
        },
    }
}

async fn delete_some_of(
    tx: &DatabaseTransaction,
    id: ConversationId,
    size: BatchSize,
) -> Result<DeletedBatch, DbErr> {
    let part = batch_size::next_range(tx, id, (0, i64::MAX), size).await?;
    deletion::delete_batch(tx, id, part.map(|it| it.last_seq), size.max_rows()).await
}

async fn newest_run(context: &Context, id: ConversationId) -> Result<Option<RunId>, DbErr> {
    let newest = run::Entity::find()
        .filter(run::Column::ConversationId.eq(id))
        .order_by_desc(run::Column::Id)
        .one(context.db.reader())
        .await?;
    Ok(newest.map(|it| it.id))
}

/// Has the message at the end of a branch written anew, or what it answers answered again.
///
/// # Errors
/// The refusals of a regenerate.
pub async fn answer_again(
    context: &Context,
    branch: ConversationId,
    by: String,
) -> Result<RunId, EngineError> {
    let done = match scheduler::step(context, branch, Command::AnswerAgain).await {
        // The branch ends with the very message that is to be written anew.
        Err(EngineError::Refused(Refusal::NothingToRegenerate)) => {
            let again = Command::Regenerate { message: None, by };
            scheduler::step(context, branch, again).await?
        }
        done => done?,
    };
    let queued = done.situation.queued.map(|it| it.id);
    queued.ok_or(Refusal::NothingToRegenerate.into())
}

fn refused(error: EngineError) -> BatchError {
    let code = match error {
        EngineError::Database(error) => return BatchError::Db(error),
        EngineError::Refused(Refusal::NoSpeaker) => "no_speaker",
        EngineError::Refused(Refusal::SpaceArchived) => "space_archived",
        _ => "nothing_to_regenerate",
    };
    BatchError::Refused(code, error.to_string())
}
