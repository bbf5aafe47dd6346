//! Embeds memories in the background, one space after the other: claims due tasks and renews their
//! leases. Finds the spaces whose model has changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{EmbeddingModelId, MemoryTaskId, SpaceId};
use leased_jobs::claim_loop::{WakeupSignal, run_claims};
use leased_jobs::clock_jump_guard::ClockJumpGuard;
use leased_jobs::heartbeat::run_heartbeat;
use leased_jobs::job::{Job, JobFailure, JobTiming, NextWork, RenewedLease};
use leased_jobs::lease::{ActiveLeases, CancelHandle, Lease};
use leased_jobs::recovery::run_recovery;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use serde_json::Value;

use crate::db::backend::StaleAfter;
use crate::memories::embedding::memory_embedding::{MemoryEmbedder, TaskEnd};
use crate::memories::embedding::model_choice::EmbeddingProviders;
use crate::memories::embedding::vector_store;
use crate::memories::embedding_model;
use crate::memories::tasks::task_queue::TaskQueue;
use crate::memories::tasks::{embedding_task, memory_task, task_queue};
use crate::spaces::space;

/// How often due tasks are claimed. Until then memories are found by their local vectors.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How often the models of all spaces are compared with their vectors. A change requests this at once;
/// the interval matters only after a crash in between.
const CHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How many tasks one query claims.
const BATCH: u64 = 16;
/// How many spaces one query checks.
const PAGE: u64 = 1_000;

/// Whether vectors are requested for a space that has some of its present model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingVectors {
    /// If some are missing, because the provider was not called or refused some.
    Requested,
    /// Never: all memories would be read, and what the provider refuses would be sent each time.
    Ignored,
}

impl MissingVectors {
    fn are_requested(self) -> bool {
        self == Self::Requested
    }
}

/// Embedding, as a kind of leased job. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct EmbeddingJob {
    embedder: MemoryEmbedder,
    /// The name of this node, which holds the leases.
    node: Arc<str>,
    heartbeat: Duration,
    /// A task without a heartbeat for this long is claimed again.
    stale_after: Duration,
    leases: ActiveLeases<MemoryTaskId>,
    wakeup: WakeupSignal,
}

impl EmbeddingJob {
    /// Creates the job of a node; `timing` is the interval of heartbeats and the age of a stale one.
    pub fn new(embedder: MemoryEmbedder, node: Arc<str>, timing: (Duration, Duration)) -> Self {
        Self {
            embedder,
            node,
            heartbeat: timing.0,
            stale_after: timing.1,
            leases: ActiveLeases::default(),
            wakeup: WakeupSignal::default(),
        }
    }

    /// Starts the loops, which run until the node shuts down.
    pub fn start(&self) {
        let shutdown = &self.embedder.shutdown;
        let stop = &shutdown.draining;
        shutdown.spawn(run_claims(self.clone(), self.wakeup.clone(), stop.clone()));
        shutdown.spawn(run_heartbeat(self.clone(), stop.clone()));
        shutdown.spawn(run_recovery(self.clone(), stop.clone()));
    }

    /// Executes all due tasks. Returns their number.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn run_due(&self) -> Result<usize, DbErr> {
        let embedder = &self.embedder;
        let mut n_done = 0;
        loop {
            let (db, now) = (embedder.db.reader(), embedder.clock.now());
            let (queue, stale) = (TaskQueue::Embedding, self.stale());
            let due = task_queue::list_due(db, queue, now, &stale, [], BATCH).await?;
            if due.is_empty() {
                return Ok(n_done);
            }
            for task in due {
                if embedder.shutdown.draining.is_cancelled() {
                    return Ok(n_done);
                }
                if let Some(claimed) = self.claim_task(task).await? {
                    self.execute(claimed).await?;
                    n_done += 1;
                }
            }
        }
    }

    /// Requests vectors for a space whose settings have changed.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn request_for_space(&self, space: SpaceId) -> Result<(), DbErr> {
        self.request_again(vec![space]).await?;
        self.embedder.events.state_changed(space);
        self.wakeup.notify();
        Ok(())
    }

    /// Requests vectors for all spaces whose model is another one than that of their vectors, and for
    /// those with missing vectors, and tries again what has failed. Called when the settings of a provider
    /// have changed.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn request_for_changed_spaces(&self) -> Result<(), DbErr> {
        self.embedder.refused.clear();
        let now = self.embedder.clock.now();
        let made_due = self
            .embedder
            .db
            .write(move |tx| Box::pin(async move { embedding_task::make_all_due(tx, now).await }));
        let made_due: Result<(), DbErr> = made_due.await;
        made_due?;
        self.request_for_outdated(MissingVectors::Requested).await?;
        self.wakeup.notify();
        Ok(())
    }

    async fn request_for_outdated(&self, missing: MissingVectors) -> Result<(), DbErr> {
        let db = self.embedder.db.reader();
        let providers = EmbeddingProviders::load(db).await?;
        let models = embedding_model::list(db).await?;
        let models: HashMap<EmbeddingModelId, _> =
            models.into_iter().map(|it| (it.id, it)).collect();
        let mut last = SpaceId(0);
        loop {
            let page = list_spaces(db, last).await?;
            let Some((id, ..)) = page.last() else {
                return Ok(());
            };
            last = *id;
            let mut outdated = Vec::new();
            for (id, settings, used) in page {
                let choice = providers.choose(&settings);
                let Some(choice) = choice else {
                    outdated.extend(used.map(|_| id));
                    continue;
                };
                let row = used.and_then(|it| models.get(&it));
                let is_outdated = match row.filter(|it| choice.fits(it)) {
                    _ if choice.is_paused() => false,
                    None => true,
                    Some(row) => missing.are_requested() && has_unembedded(db, id, row.id).await?,
                };
                if is_outdated {
                    outdated.push(id);
                }
            }
            self.request_again(outdated).await?;
        }
    }

    async fn request_again(&self, spaces: Vec<SpaceId>) -> Result<(), DbErr> {
        let now = self.embedder.clock.now();
        self.embedder
            .db
            .write(move |tx| {
                Box::pin(async move { embedding_task::request_again(tx, &spaces, now).await })
            })
            .await
    }

    fn stale(&self) -> StaleAfter {
        StaleAfter {
            after_ms: i64::try_from(self.stale_after.as_millis()).unwrap_or(i64::MAX),
            backend: self.embedder.db.backend(),
        }
    }

    async fn claim_task(
        &self,
        task: memory_task::Model,
    ) -> Result<Option<memory_task::Model>, DbErr> {
        let (now, node, stale) = (self.embedder.clock.now(), self.node.clone(), self.stale());
        self.embedder
            .db
            .write(move |tx| {
                Box::pin(
                    async move { task_queue::claim(tx, &task, None, &node, now, &stale).await },
                )
            })
            .await
    }

    async fn execute(&self, task: memory_task::Model) -> Result<(), DbErr> {
        let cancel = CancelHandle::child_of(&self.embedder.shutdown.draining);
        let _guard = self
            .leases
            .hold(Lease::new(task.id, task.lease, cancel, ()));
        let space = task.space_id;
        let ended = match self.embedder.run(&task).await {
            Ok(TaskEnd::Ended) => Ok(()),
            Ok(TaskEnd::Continues) => self.end_attempt(task, None).await,
            Err(error) => {
                let (id, attempt, error) = (task.id, task.attempt, error.to_public_text());
                tracing::warn!(task.id = %id, attempt, %error, "failed to embed memories: {error}");
                self.end_attempt(task, Some(error)).await
            }
        };
        self.embedder.events.state_changed(space);
        ended
    }

    /// Returns a task to the queue.
    async fn end_attempt(
        &self,
        task: memory_task::Model,
        error: Option<String>,
    ) -> Result<(), DbErr> {
        let now: Timestamp = self.embedder.clock.now();
        self.embedder
            .db
            .write(move |tx| {
                Box::pin(async move {
                    match error {
                        Some(error) => task_queue::fail(tx, &task, &error, now).await,
                        None => task_queue::release(tx, &task, now).await,
                    }
                })
            })
            .await
    }
}

async fn has_unembedded(
    db: &impl ConnectionTrait,
    space: SpaceId,
    model: EmbeddingModelId,
) -> Result<bool, DbErr> {
    let missing = vector_store::list_unembedded(db, space, Some(model), None, 1).await?;
    Ok(!missing.is_empty())
}

/// Returns id, settings and model of the next spaces in which something was remembered.
async fn list_spaces(
    db: &impl ConnectionTrait,
    last: SpaceId,
) -> Result<Vec<(SpaceId, Value, Option<EmbeddingModelId>)>, DbErr> {
    space::Entity::find()
        .select_only()
        .columns([
            space::Column::Id,
            space::Column::Settings,
            space::Column::EmbeddingModelId,
        ])
        .filter(space::Column::Id.gt(last))
        .filter(space::Column::MemoryVersion.gt(0))
        .filter(space::Column::IsHidden.eq(false))
        .order_by_asc(space::Column::Id)
        .limit(PAGE)
        .into_tuple()
        .all(db)
        .await
}

impl Job for EmbeddingJob {
    type Id = MemoryTaskId;
    type Data = ();
    type Error = DbErr;

    fn leases(&self) -> &ActiveLeases<MemoryTaskId> {
        &self.leases
    }

    fn timing(&self) -> JobTiming {
        JobTiming {
            heartbeat: self.heartbeat,
            stale_after: self.stale_after,
            // Each write of the task detects a lost lease.
            gives_up_stale_leases: false,
            poll_interval: Some(POLL_INTERVAL),
            recovery_interval: CHECK_INTERVAL,
        }
    }

    fn report(&self, failure: JobFailure<'_, DbErr>) {
        match failure {
            JobFailure::Heartbeat(error) | JobFailure::Claim(error) => {
                tracing::warn!(%error, "failed to claim embedding tasks; retrying: {error}");
            }
            JobFailure::HeartbeatTimeout => {
                tracing::warn!("heartbeats of embedding tasks timed out; retrying");
            }
            JobFailure::Recovery(error) => {
                tracing::warn!(%error, "failed to check embedding models; retrying: {error}");
            }
        }
    }

    async fn renew(&self, held: &[MemoryTaskId]) -> Result<Vec<RenewedLease<MemoryTaskId>>, DbErr> {
        let (db, now) = (&self.embedder.db, self.embedder.clock.now());
        task_queue::renew(db, &self.node, held, now).await
    }

    async fn claim(&mut self) -> Result<NextWork, DbErr> {
        self.run_due().await?;
        Ok(Box::pin(std::future::pending()))
    }

    /// Finds the spaces whose model changed while no node noticed it. The tasks of dead workers are
    /// claimed like those that are due.
    async fn recover(&mut self, _guard: &mut ClockJumpGuard) -> Result<(), DbErr> {
        self.request_for_outdated(MissingVectors::Ignored).await
    }
}
