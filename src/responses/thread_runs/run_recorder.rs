//! Stores the messages, steps, events and the end of a run while a task executes it.
//!
//! **Invariant:** each event is committed before it is sent, together with the message and the step
//! that it is about. All writes are fenced by the lease.

use responses_api::event::EncodedEvent;
use responses_api::threads::run_fold::RunFold;
use responses_api::threads::run_state::RunStep;
use responses_api::threads::thread_status::ThreadMessageStatus;
use sea_orm::{ConnectionTrait, EntityTrait};

use crate::db::connect::Db;
use crate::db::retry_wait;
use crate::responses::execution::recorder::RecordError;
use crate::responses::thread_runs::{run_event, run_queue, run_row_conversion};
use crate::responses::threads::{thread, thread_message, thread_run, thread_run_step};

/// Writes to the row of one running run.
pub struct RunRecorder {
    db: Db,
    id: String,
    lease: i64,
    progress: StoredProgress,
}

/// The steps and messages of a run as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredProgress {
    steps: Vec<RunStep>,
    messages: Vec<ThreadMessageStatus>,
}

impl StoredProgress {
    /// Returns what the fold contains.
    pub fn of(fold: &RunFold) -> Self {
        Self {
            steps: fold.steps().to_vec(),
            messages: fold.messages().iter().map(|it| it.status).collect(),
        }
    }

    /// Stores what the fold contains beyond this progress, and the events.
    ///
    /// # Errors
    /// Returns `LeaseLost` when the thread was deleted, and `Database` when a write fails.
    pub async fn write(
        &self,
        tx: &impl ConnectionTrait,
        fold: &RunFold,
        events: &[EncodedEvent],
    ) -> Result<(), RecordError> {
        let run = fold.header();
        for (at, step) in fold.steps().iter().enumerate() {
            let row = || run_row_conversion::step_row(&run.id, at, step);
            match self.steps.get(at) {
                None => thread_run_step::insert(tx, row()).await?,
                Some(before) if before != step => thread_run_step::replace(tx, row()).await?,
                Some(_) => {}
            }
        }
        for (at, message) in fold.messages().iter().enumerate() {
            let row = |seq| run_row_conversion::message_row(run, seq, message);
            match self.messages.get(at) {
                None => {
                    let begun_at = message.created_at;
                    let seq = thread::reserve_seqs(tx, &run.thread_id, 1, begun_at).await?;
                    let seq = seq.ok_or(RecordError::LeaseLost)?;
                    thread_message::insert_row(tx, row(seq)).await?;
                }
                Some(before) if *before != message.status => {
                    thread_message::replace_content(tx, row(0)).await?;
                }
                Some(_) => {}
            }
        }
        Ok(run_event::append(tx, &run.id, events).await?)
    }
}

impl RunRecorder {
    /// Creates a recorder for a run that this node has claimed, whose stored parts are in the fold.
    pub fn new(db: Db, row: &thread_run::Model, fold: &RunFold) -> Self {
        Self {
            db,
            id: row.id.clone(),
            lease: row.lease,
            progress: StoredProgress::of(fold),
        }
    }

    /// Stores what is new in the fold, and these events.
    ///
    /// # Errors
    /// Returns `LeaseLost` when this node no longer owns the run, and `Database` when the write fails.
    pub async fn record(
        &mut self,
        fold: &RunFold,
        events: &[EncodedEvent],
    ) -> Result<(), RecordError> {
        let next = StoredProgress::of(fold);
        let (id, lease, before) = (self.id.clone(), self.lease, self.progress.clone());
        let (fold, events) = (fold.clone(), events.to_vec());
        let written: Result<(), RecordError> = self
            .db
            .write(move |tx| {
                Box::pin(async move {
                    match run_queue::lock_lease(tx, &id, lease).await? {
                        true => before.write(tx, &fold, &events).await,
                        false => Err(RecordError::LeaseLost),
                    }
                })
            })
            .await;
        if written.is_ok() {
            self.progress = next;
        }
        written
    }

    /// Stores the state in which the task leaves the run, with what is new in the fold. Retries while
    /// the database fails.
    ///
    /// # Errors
    /// Returns `LeaseLost` when this node no longer owns the run, and `Database` when all attempts
    /// fail.
    pub async fn finish(&self, fold: &RunFold, events: &[EncodedEvent]) -> Result<(), RecordError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let written = self.finish_once(fold, events).await;
            let Err(RecordError::Database(error)) = &written else {
                let was_ours = attempt > 1 && self.is_recorded(fold).await;
                return if was_ours { Ok(()) } else { written };
            };
            tracing::warn!(run.id = %self.id, attempt, %error, "failed to store the end of run {}: {error}", self.id);
            if !retry_wait::wait_after(attempt).await {
                return written;
            }
        }
    }

    /// Returns whether an earlier attempt was committed and only its acknowledgment was lost.
    async fn is_recorded(&self, fold: &RunFold) -> bool {
        let found = thread_run::Entity::find_by_id(&self.id).one(self.db.reader());
        let is_same = |it: thread_run::Model| {
            it.lease == self.lease && run_row_conversion::state(&it) == *fold.run_state()
        };
        found.await.ok().flatten().is_some_and(is_same)
    }

    async fn finish_once(
        &self,
        fold: &RunFold,
        events: &[EncodedEvent],
    ) -> Result<(), RecordError> {
        let (id, lease, before) = (self.id.clone(), self.lease, self.progress.clone());
        let (fold, events) = (fold.clone(), events.to_vec());
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    if !run_queue::store_task_result(tx, &id, lease, fold.run_state()).await? {
                        return Err(RecordError::LeaseLost);
                    }
                    before.write(tx, &fold, &events).await
                })
            })
            .await
    }
}
