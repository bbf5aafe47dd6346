//! Table `thread_runs`: one execution of an assistant on a thread each, with a copy of its settings.

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::threads::run_values::{RequiredAction, ThreadRunError, ThreadRunUsage};
use responses_api::threads::thread_status::ThreadRunStatus;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{QueryOrder, QuerySelect};

use crate::responses::thread_runs::run_event;
use crate::responses::thread_runs::run_spec::RunSpec;
use crate::responses::threads::list_range::{ListRange, ListSlice};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "thread_runs")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub thread_id: String,
    /// The assistant may have been deleted in the meantime.
    pub assistant_id: String,
    pub user_id: UserId,
    pub status: ThreadRunStatus,
    /// The settings of the assistant and of the request when the run was created.
    pub spec: RunSpec,
    /// Written by the caller; never interpreted by the server.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    pub required_action: Option<RequiredAction>,
    pub last_error: Option<ThreadRunError>,
    pub incomplete_reason: Option<String>,
    pub usage: Option<ThreadRunUsage>,
    /// The number of its model calls, over all resumptions.
    pub n_model_calls: i64,
    /// The number of tool calls that this server has run for it.
    pub n_server_calls: i64,
    /// The remaining execution time when it is claimed next, in milliseconds.
    pub work_left_ms: i64,
    /// When it expires; for a run that has ended, when it ended.
    pub expires_at: Timestamp,
    /// The node that runs it.
    pub worker_id: Option<String>,
    /// The fencing number: incremented by each claim and required to end the run.
    pub lease: i64,
    /// The number of times that it was claimed.
    pub attempt: i64,
    /// Set from the database's clock on PostgreSQL.
    pub heartbeat_at: Option<Timestamp>,
    pub cancel_requested_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub cancelled_at: Option<Timestamp>,
    pub failed_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Returns the condition that a run has not ended, spelled as in the index
/// `one_active_run_per_thread`, because SQLite compares the text.
pub fn is_active() -> Expr {
    Expr::cust(
        "(status = 'queued' OR status = 'in_progress' \
        OR status = 'requires_action' OR status = 'cancelling')",
    )
}

/// Returns the id of the run of this thread that has not ended.
pub async fn find_active(db: &impl ConnectionTrait, thread: &str) -> Result<Option<String>, DbErr> {
    Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::ThreadId.eq(thread))
        .filter(is_active())
        .into_tuple()
        .one(db)
        .await
}

/// Requests the cancellation of the run of a thread that has not ended.
pub async fn request_cancel_of_thread(
    tx: &impl ConnectionTrait,
    thread: &str,
    now: Timestamp,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::CancelRequestedAt, Expr::value(now))
        .filter(Column::ThreadId.eq(thread))
        .filter(is_active())
        .exec(tx)
        .await?;
    // No task executes these, so they expire at once.
    Entity::update_many()
        .col_expr(Column::ExpiresAt, Expr::value(now))
        .filter(Column::ThreadId.eq(thread))
        .filter(Expr::cust(
            "(status = 'queued' OR status = 'requires_action')",
        ))
        .exec(tx)
        .await
        .map(drop)
}

/// Finds a run of a thread.
pub async fn find(
    db: &impl ConnectionTrait,
    thread: &str,
    id: &str,
) -> Result<Option<Model>, DbErr> {
    if id.contains('\0') {
        return Ok(None); // PostgreSQL rejects NUL in text
    }
    Entity::find_by_id(id)
        .filter(Column::ThreadId.eq(thread))
        .one(db)
        .await
}

/// Returns the status of a run, or `None` if it no longer exists.
pub async fn find_status(
    db: &impl ConnectionTrait,
    id: &str,
) -> Result<Option<ThreadRunStatus>, DbErr> {
    Entity::find_by_id(id)
        .select_only()
        .column(Column::Status)
        .into_tuple()
        .one(db)
        .await
}

/// Returns a part of the runs of a thread. Their positions are their ids, which increase with time.
pub async fn list(
    db: &impl ConnectionTrait,
    thread: &str,
    range: ListRange<String>,
) -> Result<ListSlice<Model>, DbErr> {
    let of_thread = Entity::find().filter(Column::ThreadId.eq(thread));
    range.load(db, of_thread, Column::Id).await
}

/// Returns these runs, oldest first.
pub async fn list_by_ids(db: &impl ConnectionTrait, ids: Vec<String>) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::Id.is_in(ids))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
        .all(db)
        .await
}

/// Replaces the metadata. Returns the run, or `None` if it was deleted in the meantime.
pub async fn set_metadata(
    tx: &impl ConnectionTrait,
    id: &str,
    metadata: Json,
) -> Result<Option<Model>, DbErr> {
    let mut updated = Entity::update_many()
        .col_expr(Column::Metadata, Expr::value(metadata))
        .filter(Column::Id.eq(id))
        .exec_with_returning(tx)
        .await?;
    Ok(updated.pop())
}

/// Returns runs that ended before this time and still have events, at most 100.
pub async fn list_ended_with_events(
    db: &impl ConnectionTrait,
    before: Timestamp,
) -> Result<Vec<String>, DbErr> {
    Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(is_active().not())
        .filter(Column::ExpiresAt.lt(before))
        .filter(Expr::exists(own_events()))
        .limit(100)
        .into_tuple()
        .all(db)
        .await
}

fn own_events() -> SelectStatement {
    let own = (run_event::Entity, run_event::Column::RunId);
    Query::select()
        .expr(Expr::val(1))
        .from(run_event::Entity)
        .and_where(Expr::col(own).eq(Expr::col((Entity, Column::Id))))
        .to_owned()
}
