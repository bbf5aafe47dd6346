//! Counts the background work on memories and the memories of all spaces, for metrics and admins.

use std::sync::Arc;

use base::clock::Timestamp;
use parking_lot::Mutex;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect,
};

use crate::memories::tasks::memory_task;
use crate::memories::tasks::memory_task::MemoryTaskStatus;
use crate::memories::tasks::task_queue::TaskQueue;
use crate::memories::{memory, memory_vector};
use crate::spaces::space;

/// How long counted totals are used again: counting reads an index entry for each memory.
const TOTALS_VALID_MS: i64 = 60_000;

/// The memories of all spaces, and the background work on them.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLoad {
    pub tasks: TaskLoad,
    pub totals: MemoryTotals,
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
#[derive(Clone, Copy, Debug)]
pub struct MemoryTotals {
    pub memories: u64,
    /// Those that wait for a vector of the model of their space.
    pub vectors_stale: u64,
}

/// The totals that were counted last, and when. Cheap to clone; clones share state.
#[derive(Clone, Debug, Default)]
pub struct TotalsCache(Arc<Mutex<Option<(Timestamp, MemoryTotals)>>>);

impl TaskLoad {
    /// Returns the age of the oldest task that has not failed.
    pub fn oldest_age_ms(&self, now: Timestamp) -> Option<i64> {
        self.oldest_created_at
            .map(|it| std::cmp::max(now.ms_since(it), 0))
    }
}

/// Returns the load. The tasks are counted each time, the totals once a minute.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load(
    db: &impl ConnectionTrait,
    cache: &TotalsCache,
    now: Timestamp,
) -> Result<MemoryLoad, DbErr> {
    let tasks = count_tasks(db).await?;
    let known = *cache.0.lock();
    let is_valid = |at: Timestamp| (0..TOTALS_VALID_MS).contains(&now.ms_since(at));
    if let Some((_, totals)) = known.filter(|(at, _)| is_valid(*at)) {
        return Ok(MemoryLoad { tasks, totals });
    }
    let totals = count_totals(db).await?;
    *cache.0.lock() = Some((now, totals));
    Ok(MemoryLoad { tasks, totals })
}

/// Counts the tasks by status. This reads all tasks, but a space has few.
async fn count_tasks(db: &impl ConnectionTrait) -> Result<TaskLoad, DbErr> {
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
