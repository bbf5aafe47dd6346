//! Table `thread_runs`: one execution of an assistant on a thread each, with a copy of its settings.

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::threads::thread_status::ThreadRunStatus;
use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;

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
    #[sea_orm(column_type = "JsonBinary")]
    pub spec: Json,
    /// Written by the caller; never interpreted by us.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub required_action: Option<Json>,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub last_error: Option<Json>,
    pub incomplete_reason: Option<String>,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub usage: Option<Json>,
    /// How many model calls it has made, over all resumptions.
    pub n_model_calls: i64,
    /// How many tool calls this server has run for it.
    pub n_server_calls: i64,
    pub expires_at: Timestamp,
    /// The node that runs it.
    pub worker_id: Option<String>,
    /// The fencing number: incremented by each claim and required to end the run.
    pub lease: i64,
    /// How often it was claimed.
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

/// Returns the condition that a run has not ended, in the words of the index
/// `one_active_run_per_thread`: SQLite compares them.
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
        .await
        .map(drop)
}
