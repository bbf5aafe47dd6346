//! Table `jobs`: background jobs that create a branch, or delete a conversation or a space, in
//! batches, with their progress and lease. Inserts, claims, renews, ends and cancels jobs.
//!
//! **Invariant:** a batch commits together with its cursor, and only under the lease with which its
//! worker claimed the job. `needs_work` is true until a worker has nothing left to do for the job:
//! a branch job that was canceled or failed needs work until its copied rows are deleted.

use base::clock::Timestamp;
use base::ids::{ConversationId, JobId, RunId, SpaceId, UserId};
use sea_orm::ActiveValue::Set;
use sea_orm::UpdateMany;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait};
use serde::{Deserialize, Serialize};

use crate::db::backend;
use crate::db::backend::{Backend, StaleAfter};
use crate::db::connect::Db;
use crate::db::string_enum::string_enum;

/// How long an ended job is listed.
const RETENTION_MS: i64 = 7 * 24 * 60 * 60 * 1000;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "jobs")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: JobId,
    pub kind: StoredJobKind,
    /// The user who started it.
    pub user_id: Option<UserId>,
    pub space_id: Option<SpaceId>,
    /// The branch that is created, or the conversation that is deleted.
    pub conversation_id: Option<ConversationId>,
    /// For a regenerate: its run.
    pub run_id: Option<RunId>,
    pub status: JobStatus,
    pub needs_work: bool,
    /// In messages.
    pub n_done: i64,
    pub n_total: i64,
    /// The progress after the last committed batch.
    #[sea_orm(column_type = "JsonBinary")]
    pub cursor: Json,
    pub heartbeat_at: Timestamp,
    pub worker_id: Option<String>,
    /// The fencing number, which grows with each claim.
    pub lease: i64,
    #[sea_orm(column_type = "JsonBinary")]
    pub report: Json,
    #[sea_orm(column_type = "JsonBinary")]
    pub error: Option<Json>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// What a job does.
    #[schema(as = StoredJobKind)]
    StoredJobKind { Branch, RegenerateBranch, DeleteConversation, DeleteSpace }
    /// The status of a job.
    #[schema(as = JobStatus)]
    JobStatus { Running, Succeeded, Failed, Canceled }
}

/// Where a job continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobCursor {
    /// For a branch: everything up to this `seq` is copied.
    pub seq: i64,
    /// For a branch: the size of the copied texts in bytes.
    pub text_bytes: i64,
    /// For a branch: all messages are copied, and it is visible.
    pub is_whole: bool,
    /// For a deletion: the runs were canceled.
    pub is_closed: bool,
    /// For a regenerate: the display name of the requesting user.
    pub by: String,
}

impl StoredJobKind {
    /// Returns whether the job creates a branch; only such a job can be canceled.
    pub fn creates_branch(self) -> bool {
        matches!(self, Self::Branch | Self::RegenerateBranch)
    }
}

impl Model {
    /// Returns where the job continues.
    pub fn parse_cursor(&self) -> JobCursor {
        serde_json::from_value(self.cursor.clone()).unwrap_or_default()
    }
}

/// A job to be started.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub kind: StoredJobKind,
    pub user: Option<UserId>,
    pub n_total: i64,
    pub cursor: JobCursor,
    /// The node that works on it.
    pub worker: String,
    pub now: Timestamp,
    pub backend: Backend,
}

/// What a job works on.
#[derive(Clone, Copy, Debug)]
pub struct JobSubject {
    pub space: SpaceId,
    pub conversation: Option<ConversationId>,
}

/// Inserts a job under its first lease, held by the inserting worker. A unique violation means that
/// the user has another branch job.
pub async fn insert(
    tx: &impl ConnectionTrait,
    new: NewJob,
    subject: JobSubject,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        kind: Set(new.kind),
        user_id: Set(new.user),
        space_id: Set(Some(subject.space)),
        conversation_id: Set(subject.conversation),
        status: Set(JobStatus::Running),
        needs_work: Set(true),
        n_done: Set(0),
        n_total: Set(new.n_total),
        cursor: Set(cursor_json(&new.cursor)),
        heartbeat_at: Set(new.now),
        worker_id: Set(Some(new.worker.clone())),
        lease: Set(1),
        report: Set(serde_json::json!({})),
        created_at: Set(new.now),
        ..Default::default()
    };
    let row = row.insert(tx).await?;
    save_progress(tx, &row, new.now, new.backend).await?;
    Ok(row)
}

fn cursor_json(cursor: &JobCursor) -> Json {
    serde_json::to_value(cursor).unwrap_or_default()
}

/// Limits a statement to a job that is still claimed under this lease.
fn under_lease(update: UpdateMany<Entity>, job: &Model) -> UpdateMany<Entity> {
    update
        .filter(Column::Id.eq(job.id))
        .filter(Column::WorkerId.eq(job.worker_id.clone()))
        .filter(Column::Lease.eq(job.lease))
}

/// Renews the leases of the jobs that a worker holds, and returns those that are still its own.
pub async fn heartbeat(
    db: &impl ConnectionTrait,
    worker: &str,
    held: &[JobId],
    now: Timestamp,
    backend: Backend,
) -> Result<Vec<Model>, DbErr> {
    Entity::update_many()
        .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
        .filter(Column::Id.is_in(held.iter().copied()))
        .filter(Column::WorkerId.eq(worker))
        .filter(Column::NeedsWork.eq(true))
        .exec_with_returning(db)
        .await
}

/// Saves the progress of the job and renews its lease. Returns `false` if it was canceled or
/// claimed again; the batch must not commit then.
pub async fn save_progress(
    tx: &impl ConnectionTrait,
    job: &Model,
    now: Timestamp,
    backend: Backend,
) -> Result<bool, DbErr> {
    let result = under_lease(Entity::update_many(), job)
        .col_expr(Column::NDone, Expr::value(job.n_done))
        .col_expr(Column::Cursor, Expr::value(job.cursor.clone()))
        .col_expr(Column::RunId, Expr::value(job.run_id))
        .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
        .filter(Column::Status.eq(job.status))
        .filter(Column::NeedsWork.eq(true))
        .exec(tx)
        .await?;
    Ok(result.rows_affected == 1)
}

/// Ends a running job of this worker. `needs_work` means that its partial result must still be
/// deleted.
pub async fn finish(
    tx: &impl ConnectionTrait,
    job: &Model,
    status: JobStatus,
    error: Option<Json>,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let is_whole = job.parse_cursor().is_whole;
    let needs_work = status != JobStatus::Succeeded && job.kind.creates_branch() && !is_whole;
    let ended = under_lease(Entity::update_many(), job)
        .col_expr(Column::Status, Expr::value(status))
        .col_expr(Column::NeedsWork, Expr::value(needs_work))
        .col_expr(Column::Error, Expr::value(error))
        .col_expr(Column::NDone, Expr::value(job.n_done))
        .col_expr(Column::Cursor, Expr::value(job.cursor.clone()))
        .col_expr(Column::RunId, Expr::value(job.run_id))
        .col_expr(Column::FinishedAt, Expr::value(now))
        .filter(Column::Status.eq(JobStatus::Running))
        .exec(tx)
        .await?;
    Ok(ended.rows_affected == 1)
}

/// Records that the partial result of a branch job is deleted.
pub async fn clear_needs_work(tx: &impl ConnectionTrait, job: &Model) -> Result<(), DbErr> {
    under_lease(Entity::update_many(), job)
        .col_expr(Column::NeedsWork, Expr::value(false))
        .exec(tx)
        .await
        .map(drop)
}

/// Cancels a running branch job. Returns `false` if it has ended or is a deletion.
pub async fn cancel(db: &Db, id: JobId, now: Timestamp) -> Result<bool, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let canceled = running_branch_jobs(Entity::update_many())
                .col_expr(Column::Status, Expr::value(JobStatus::Canceled))
                .col_expr(Column::FinishedAt, Expr::value(now))
                .filter(Column::Id.eq(id))
                .exec(tx)
                .await?;
            Ok(canceled.rows_affected == 1)
        })
    })
    .await
}

/// Cancels the branch jobs of a space that is being deleted, which also deletes their branches.
pub async fn cancel_branch_jobs(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    now: Timestamp,
) -> Result<(), DbErr> {
    running_branch_jobs(Entity::update_many())
        .col_expr(Column::Status, Expr::value(JobStatus::Canceled))
        .col_expr(Column::NeedsWork, Expr::value(false))
        .col_expr(Column::FinishedAt, Expr::value(now))
        .filter(Column::SpaceId.eq(space))
        .exec(tx)
        .await
        .map(drop)
}

fn running_branch_jobs(update: UpdateMany<Entity>) -> UpdateMany<Entity> {
    update
        .filter(Column::Status.eq(JobStatus::Running))
        .filter(Column::Kind.is_in([StoredJobKind::Branch, StoredJobKind::RegenerateBranch]))
}

/// Returns the jobs that need work and whose heartbeat is stale.
pub async fn list_expired(
    db: &impl ConnectionTrait,
    now: Timestamp,
    stale: &StaleAfter,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Expr::cust("needs_work"))
        .filter(stale.condition(Column::HeartbeatAt, now))
        .all(db)
        .await
}

/// Claims a job under the next lease. Returns `None` if it was claimed or renewed after it was
/// `seen`.
pub async fn claim(
    tx: &impl ConnectionTrait,
    seen: &Model,
    worker: &str,
    now: Timestamp,
    backend: Backend,
) -> Result<Option<Model>, DbErr> {
    let claimed = Entity::update_many()
        .col_expr(Column::WorkerId, Expr::value(worker))
        .col_expr(Column::Lease, Expr::col(Column::Lease).add(1))
        .col_expr(Column::HeartbeatAt, backend::lease_time(backend, now))
        .filter(Column::Id.eq(seen.id))
        .filter(Column::NeedsWork.eq(true))
        .filter(Column::Lease.eq(seen.lease))
        .filter(Column::HeartbeatAt.eq(seen.heartbeat_at))
        .exec_with_returning(tx)
        .await?;
    Ok(claimed.into_iter().next())
}

/// Releases a job, so that another node, or this one after a restart, continues it immediately.
pub async fn release(tx: &impl ConnectionTrait, job: &Model) -> Result<(), DbErr> {
    under_lease(Entity::update_many(), job)
        // A renewal that waits for this row must not make the job look alive again.
        .col_expr(Column::WorkerId, Expr::value(Option::<String>::None))
        .col_expr(Column::HeartbeatAt, Expr::value(0))
        .exec(tx)
        .await
        .map(drop)
}

/// Deletes jobs that ended long ago.
pub async fn delete_expired(db: &Db, now: Timestamp) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            Entity::delete_many()
                .filter(Column::FinishedAt.lt(now.plus_ms(-RETENTION_MS)))
                .filter(Column::NeedsWork.eq(false))
                .exec(tx)
                .await
                .map(drop)
        })
    })
    .await
}

/// Returns a job that a user started.
pub async fn find_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    id: JobId,
) -> Result<Option<Model>, DbErr> {
    let job = Entity::find_by_id(id).filter(Column::UserId.eq(user));
    job.one(db).await
}

/// Returns whether the user has a running branch job.
pub async fn has_running_branch_job(
    db: &impl ConnectionTrait,
    user: UserId,
) -> Result<bool, DbErr> {
    let running = Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::Status.eq(JobStatus::Running))
        .filter(Column::Kind.is_in([StoredJobKind::Branch, StoredJobKind::RegenerateBranch]));
    Ok(running.one(db).await?.is_some())
}
