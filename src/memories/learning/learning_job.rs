//! Learns from messages in the background: claims due tasks, renews their leases, deletes the memories
//! beyond the maximum of each space, and purges memories that were deleted long ago.
//!
//! A node executes a few tasks at the same time, because a model may need minutes for one, and at most
//! one of each space, so that a task finds the memories that the previous one has stored.

use std::collections::HashSet;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{MemoryTaskId, SpaceId};
use base::shutdown::Shutdown;
use leased_jobs::claim_loop::{WakeupSignal, run_claims};
use leased_jobs::clock_jump_guard::ClockJumpGuard;
use leased_jobs::heartbeat::run_heartbeat;
use leased_jobs::job::{Job, JobFailure, JobTiming, NextWork, RenewedLease};
use leased_jobs::lease::{ActiveLeases, CancelHandle, Lease, LeaseGuard};
use leased_jobs::recovery::run_recovery;
use sea_orm::DbErr;
use tokio::task::JoinHandle;

use crate::memories::error::MemoryError;
use crate::memories::learning::message_learning::LearningServices;
use crate::memories::memory_deletion;
use crate::memories::pruning::maximum;
use crate::memories::summaries::summary_task;
use crate::memories::tasks::memory_task::MemoryTaskKind;
use crate::memories::tasks::task_queue::TaskQueue;
use crate::memories::tasks::{memory_task, task_queue};

/// How often due tasks are claimed. Nobody waits for them.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How often memories are purged.
const PURGE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long a deleted memory can be restored: 7 days.
const PURGE_AFTER_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// How many tasks a node executes at the same time: enough that tasks with slow models do not delay
/// the others.
const MAX_RUNNING: usize = 4;
/// How many due tasks one query reads.
const BATCH: u64 = 16;

/// Learning, as a kind of leased job. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct LearningJob {
    services: LearningServices,
    /// The tasks that this node executes, with their spaces.
    leases: ActiveLeases<MemoryTaskId, SpaceId>,
    /// Notified when a task has ended.
    wakeup: WakeupSignal,
    shutdown: Shutdown,
}

impl LearningJob {
    /// Creates the job.
    pub fn new(services: LearningServices, shutdown: Shutdown) -> Self {
        Self {
            services,
            leases: ActiveLeases::default(),
            wakeup: WakeupSignal::default(),
            shutdown,
        }
    }

    /// Starts the loops, which run until the node shuts down.
    pub fn start(&self) {
        let stop = &self.shutdown.draining;
        let wakeup = self.wakeup.clone();
        self.shutdown
            .spawn(run_claims(self.clone(), wakeup, stop.clone()));
        self.shutdown
            .spawn(run_heartbeat(self.clone(), stop.clone()));
        self.shutdown
            .spawn(run_recovery(self.clone(), stop.clone()));
    }

    /// Executes all due tasks and waits until they have ended. Returns their number.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn run_due(&self) -> Result<usize, DbErr> {
        let mut n_done = 0;
        loop {
            let started = self.start_due().await?;
            if started.is_empty() {
                return Ok(n_done);
            }
            for task in started {
                // A task that panicked is claimed again when its lease expires.
                let _ = task.await;
                n_done += 1;
            }
        }
    }

    /// Claims due tasks and starts as many as may run. Returns the started ones.
    async fn start_due(&self) -> Result<Vec<JoinHandle<()>>, DbErr> {
        let services = &self.services;
        let mut started = Vec::new();
        loop {
            let running = self.leases.list();
            let is_draining = self.shutdown.draining.is_cancelled();
            if running.len() >= MAX_RUNNING || is_draining {
                return Ok(started);
            }
            let (db, now) = (services.db.reader(), services.clock.now());
            let busy = running.into_iter().map(|it| it.data);
            let (queue, stale) = (TaskQueue::Learning, services.stale());
            let due = task_queue::list_due(db, queue, now, &stale, busy, BATCH).await?;
            if due.is_empty() {
                return Ok(started);
            }
            for task in one_of_each_space(due) {
                if self.leases.count() >= MAX_RUNNING {
                    break;
                }
                if let Some(task) = services.claim(task).await? {
                    started.push(self.spawn(task));
                }
            }
        }
    }

    /// Deletes the memories beyond the maximum of each space, and purges those that were deleted long
    /// ago.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn purge(&self) -> Result<(), DbErr> {
        let (db, now) = (&self.services.db, self.services.clock.now());
        maximum::enforce_all(db, &self.services.events, now).await?;
        let before = Timestamp(now.0 - PURGE_AFTER_MS);
        loop {
            let purged = db
                .write(move |tx| Box::pin(async move { memory_deletion::purge(tx, before).await }));
            let purged: Result<u64, DbErr> = purged.await;
            if purged? == 0 {
                return Ok(());
            }
        }
    }

    fn spawn(&self, task: memory_task::Model) -> JoinHandle<()> {
        let cancel = CancelHandle::child_of(&self.shutdown.draining);
        let lease = Lease::new(task.id, task.lease, cancel.clone(), task.space_id);
        let guard = self.leases.hold(lease);
        let job = self.clone();
        self.shutdown
            .spawn(async move { job.execute(task, &cancel, guard).await })
    }

    async fn execute(
        self,
        task: memory_task::Model,
        cancel: &CancelHandle,
        guard: LeaseGuard<MemoryTaskId, SpaceId>,
    ) {
        let (id, attempt, space) = (task.id, task.attempt, task.space_id);
        let done = match task.kind {
            MemoryTaskKind::Summarize => {
                summary_task::run(&self.services, &task, &cancel.token).await
            }
            _ => self.services.learn(task.clone(), &cancel.token).await,
        };
        let ended = match done {
            // It is claimed again when its lease expires, unless another worker already has it.
            Ok(()) | Err(MemoryError::Canceled) => Ok(()),
            Err(error) => {
                tracing::warn!(task.id = %id, attempt, %error, "a memory task failed: {error}");
                self.services.fail(task, error.to_public_text()).await
            }
        };
        if let Err(error) = ended {
            tracing::warn!(task.id = %id, %error, "failed to end a memory task; its lease will expire: {error}");
        }
        self.services.events.state_changed(space);
        drop(guard);
        self.wakeup.notify();
    }
}

/// Returns the first task of each space.
fn one_of_each_space(due: Vec<memory_task::Model>) -> impl Iterator<Item = memory_task::Model> {
    let mut spaces = HashSet::new();
    due.into_iter().filter(move |it| spaces.insert(it.space_id))
}

impl Job for LearningJob {
    type Id = MemoryTaskId;
    type Data = SpaceId;
    type Error = DbErr;

    fn leases(&self) -> &ActiveLeases<MemoryTaskId, SpaceId> {
        &self.leases
    }

    fn timing(&self) -> JobTiming {
        JobTiming {
            heartbeat: self.services.heartbeat,
            stale_after: self.services.stale_after,
            // The end of the task detects a lost lease.
            gives_up_stale_leases: false,
            poll_interval: Some(POLL_INTERVAL),
            recovery_interval: PURGE_INTERVAL,
        }
    }

    fn report(&self, failure: JobFailure<'_, DbErr>) {
        match failure {
            JobFailure::Heartbeat(error) | JobFailure::Claim(error) => {
                tracing::warn!(%error, "failed to claim memory tasks; retrying: {error}");
            }
            JobFailure::HeartbeatTimeout => {
                tracing::warn!("heartbeats of memory tasks timed out; retrying");
            }
            JobFailure::Recovery(error) => {
                tracing::warn!(%error, "failed to purge deleted memories; retrying: {error}");
            }
        }
    }

    async fn renew(&self, held: &[MemoryTaskId]) -> Result<Vec<RenewedLease<MemoryTaskId>>, DbErr> {
        let services = &self.services;
        task_queue::renew(&services.db, &services.node, held, services.clock.now()).await
    }

    async fn claim(&mut self) -> Result<NextWork, DbErr> {
        self.start_due().await?;
        Ok(Box::pin(std::future::pending()))
    }

    /// Purges memories. Tasks with an expired lease need no recovery: they are claimed as due.
    async fn recover(&mut self, _guard: &mut ClockJumpGuard) -> Result<(), DbErr> {
        self.purge().await
    }
}
