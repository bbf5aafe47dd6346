//! Counts the background work on memories and the memories of all spaces, for metrics and admins.

use std::sync::Arc;

use base::clock::Timestamp;
use base::shutdown::Shutdown;
use parking_lot::Mutex;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect,
};
use tokio::sync::watch;

use crate::db::connect::Db;
use crate::memories::tasks::memory_task;
use crate::memories::tasks::memory_task::MemoryTaskStatus;
use crate::memories::tasks::task_queue::TaskQueue;
use crate::memories::{memory, memory_vector};
use crate::spaces::space;

/// How long counted totals are used again: counting reads an index entry for each memory.
const TOTALS_VALID_MS: i64 = 60_000;

/// The memories of all spaces, and the background work on them. `None` means that the numbers are unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryLoad {
    pub tasks: Option<TaskLoad>,
    pub totals: Option<MemoryTotals>,
}

/// The tasks of all nodes together.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskLoad {
    pub queued: u64,
    pub running: u64,
    pub failed: u64,
    /// When the oldest queued or running task was created.
    pub oldest_created_at: Option<Timestamp>,
}

/// Counts of memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryTotals {
    pub memories: u64,
    /// Those that wait for a vector of the model of their space.
    pub vectors_stale: u64,
}

/// The totals that were counted last. Cheap to clone; clones share state.
#[derive(Clone, Debug, Default)]
pub struct TotalsCache(Arc<Mutex<CountedTotals>>);

/// What was counted, and whether it is being counted again.
#[derive(Debug, Default)]
struct CountedTotals {
    /// The totals, and when they were requested.
    known: Option<(Timestamp, MemoryTotals)>,
    /// Its sender is dropped when the task that counts ends.
    counting: Option<watch::Receiver<()>>,
}

impl TaskLoad {
    /// Returns the age of the oldest task that has not failed.
    pub fn oldest_age_ms(&self, now: Timestamp) -> Option<i64> {
        self.oldest_created_at
            .map(|it| std::cmp::max(now.ms_since(it), 0))
    }
}

impl TotalsCache {
    /// Returns the totals, which are counted once a minute at most. One task counts for all callers, and
    /// continues if no caller waits any more. Returns `None` if the totals were never counted successfully.
    pub async fn load(&self, db: &Db, shutdown: &Shutdown, now: Timestamp) -> Option<MemoryTotals> {
        let db = db.clone();
        let count = move || async move { count_totals(db.reader()).await };
        self.load_with(shutdown, now, count).await
    }

    /// Returns the totals that were counted last, however old they are.
    pub fn last_known(&self) -> Option<MemoryTotals> {
        self.0.lock().known.map(|(_, totals)| totals)
    }

    async fn load_with<F>(
        &self,
        shutdown: &Shutdown,
        now: Timestamp,
        count: impl FnOnce() -> F,
    ) -> Option<MemoryTotals>
    where
        F: Future<Output = Result<MemoryTotals, DbErr>> + Send + 'static,
    {
        if let Some(mut counting) = self.start(shutdown, now, count) {
            // Nothing is sent: `changed` returns an error when the task drops the sender.
            while counting.changed().await.is_ok() {}
        }
        self.last_known()
    }

    /// Starts the task that counts, if necessary. Returns a receiver whose sender the task drops when it ends;
    /// `None` if the totals are new enough.
    fn start<F>(
        &self,
        shutdown: &Shutdown,
        now: Timestamp,
        count: impl FnOnce() -> F,
    ) -> Option<watch::Receiver<()>>
    where
        F: Future<Output = Result<MemoryTotals, DbErr>> + Send + 'static,
    {
        let mut state = self.0.lock();
        let is_valid = |at: Timestamp| (0..TOTALS_VALID_MS).contains(&now.ms_since(at));
        if state.known.is_some_and(|(at, _)| is_valid(at)) {
            return None;
        }
        let running = state.counting.clone();
        if let Some(running) = running.filter(|it| it.has_changed().is_ok()) {
            return Some(running);
        }
        let (ended, counting) = watch::channel(());
        state.counting = Some(counting.clone());
        let (cache, counted) = (self.clone(), count());
        let stopping = shutdown.stopping.clone();
        shutdown.spawn(async move {
            match stopping.run_until_cancelled(counted).await {
                Some(Ok(totals)) => cache.0.lock().known = Some((now, totals)),
                Some(Err(error)) => tracing::warn!(%error, "failed to count the memories"),
                None => {}
            }
            drop(ended);
        });
        Some(counting)
    }
}

/// Counts the tasks by status. This reads all tasks, but a space has few.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn count_tasks(db: &impl ConnectionTrait) -> Result<TaskLoad, DbErr> {
    let rows: Vec<(MemoryTaskStatus, i64, Option<Timestamp>)> = memory_task::Entity::find()
        .select_only()
        .column(memory_task::Column::Status)
        .column_as(memory_task::Column::Id.count(), "n")
        .column_as(memory_task::Column::CreatedAt.min(), "oldest")
        .group_by(memory_task::Column::Status)
        .into_tuple()
        .all(db)
        .await?;
    let mut load = TaskLoad::default();
    for (status, n, oldest) in rows {
        let n = n.unsigned_abs();
        match status {
            MemoryTaskStatus::Queued => load.queued = n,
            MemoryTaskStatus::Running => load.running = n,
            MemoryTaskStatus::Failed => {
                load.failed = n;
                continue;
            }
        }
        let known = load.oldest_created_at.into_iter();
        load.oldest_created_at = known.chain(oldest).min();
    }
    Ok(load)
}

async fn count_totals(db: &impl ConnectionTrait) -> Result<MemoryTotals, DbErr> {
    let stored = memory::Entity::find().filter(memory::Column::DeletedAt.is_null());
    Ok(MemoryTotals {
        memories: stored.count(db).await?,
        vectors_stale: count_stale(db).await?,
    })
}

/// Counts the memories without a vector of the model of their space, in the spaces with an embedding
/// task: a task exists only while vectors are missing.
async fn count_stale(db: &impl ConnectionTrait) -> Result<u64, DbErr> {
    let with_task = Query::select()
        .column(memory_task::Column::SpaceId)
        .from(memory_task::Entity)
        .and_where(memory_task::Column::Kind.is_in(TaskQueue::Embedding.kinds()))
        .to_owned();
    let vector = |column: memory_vector::Column| Expr::col((memory_vector::Entity, column));
    let of_space = Expr::col((space::Entity, space::Column::EmbeddingModelId));
    let has_vector = Query::select()
        .expr(Expr::value(1))
        .from(memory_vector::Entity)
        .inner_join(
            space::Entity,
            of_space.eq(vector(memory_vector::Column::EmbeddingModelId)),
        )
        .and_where(
            vector(memory_vector::Column::MemoryId).equals((memory::Entity, memory::Column::Id)),
        )
        .and_where(
            Expr::col((space::Entity, space::Column::Id))
                .equals((memory::Entity, memory::Column::SpaceId)),
        )
        .to_owned();
    memory::Entity::find()
        .filter(memory::Column::SpaceId.in_subquery(with_task))
        .filter(memory::Column::DeletedAt.is_null())
        .filter(Expr::exists(has_vector).not())
        .count(db)
        .await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use base::clock::Timestamp;
    use base::shutdown::Shutdown;
    use sea_orm::DbErr;
    use tokio::sync::Semaphore;

    use super::{MemoryTotals, TOTALS_VALID_MS, TotalsCache};

    /// Counts one memory more each time, when it is allowed to.
    #[derive(Clone)]
    struct Counter {
        n_started: Arc<AtomicUsize>,
        allowed: Arc<Semaphore>,
    }

    impl Counter {
        fn new() -> Self {
            Self {
                n_started: Arc::default(),
                allowed: Arc::new(Semaphore::new(0)),
            }
        }

        async fn count(self) -> Result<MemoryTotals, DbErr> {
            let n = self.n_started.fetch_add(1, Ordering::SeqCst) + 1;
            let permit = self.allowed.acquire().await.expect("it is open");
            permit.forget();
            Ok(totals(n))
        }
    }

    fn totals(n: usize) -> MemoryTotals {
        MemoryTotals {
            memories: n as u64,
            vectors_stale: 0,
        }
    }

    #[tokio::test]
    async fn one_task_counts_for_all_callers_even_if_they_stop_waiting() {
        let (cache, shutdown, counter) = (TotalsCache::default(), Shutdown::new(), Counter::new());
        let load = |at: i64| {
            let (counter, cache, shutdown) = (counter.clone(), cache.clone(), shutdown.clone());
            async move {
                let count = move || counter.count();
                cache.load_with(&shutdown, Timestamp(at), count).await
            }
        };

        let dropped = load(0);
        tokio::select! {
            biased;
            _ = dropped => panic!("nothing was counted"),
            () = std::future::ready(()) => {}
        }
        counter.allowed.add_permits(1);
        let loaded = tokio::join!(load(1), load(2));

        assert_eq!(loaded, (Some(totals(1)), Some(totals(1))));
        assert_eq!(counter.n_started.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn the_last_totals_are_known_while_new_ones_are_counted() {
        let (cache, shutdown, counter) = (TotalsCache::default(), Shutdown::new(), Counter::new());
        let started = counter.clone();
        counter.allowed.add_permits(1);
        let first = cache.load_with(&shutdown, Timestamp(0), move || started.count());
        assert_eq!(first.await, Some(totals(1)));
        assert_eq!(cache.last_known(), Some(totals(1)));

        let later = Timestamp(TOTALS_VALID_MS);
        let started = counter.clone();
        let counting = cache.start(&shutdown, later, move || started.count());

        assert!(counting.is_some());
        assert_eq!(cache.last_known(), Some(totals(1)));
        counter.allowed.add_permits(1);
        let again = cache.load_with(&shutdown, later, || counter.count());
        assert_eq!(again.await, Some(totals(2)));
    }
}
