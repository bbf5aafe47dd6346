//! Table `thread_run_steps`: what a run did, in order: messages it wrote, and tools it called.

use base::clock::Timestamp;
use responses_api::threads::run_state::StepDetails;
use responses_api::threads::run_values::{ThreadRunError, ThreadRunUsage};
use responses_api::threads::thread_status::{ThreadRunStepKind, ThreadRunStepStatus};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Query;
use sea_orm::{IntoActiveModel, QueryOrder};

use crate::responses::threads::list_range::{ListRange, ListSlice};
use crate::responses::threads::thread_run;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "thread_run_steps")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub run_id: String,
    /// Unique in the run, from 0.
    pub position: i64,
    #[sea_orm(column_name = "type")]
    pub kind: ThreadRunStepKind,
    pub status: ThreadRunStepStatus,
    pub step_details: StepDetails,
    pub usage: Option<ThreadRunUsage>,
    pub last_error: Option<ThreadRunError>,
    pub created_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub cancelled_at: Option<Timestamp>,
    pub failed_at: Option<Timestamp>,
    pub expired_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Inserts a step.
pub async fn insert(tx: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model())
        .exec_without_returning(tx)
        .await
        .map(drop)
}

/// Replaces all values of a step.
pub async fn replace(tx: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    let row = row.into_active_model().reset_all();
    row.update(tx).await.map(drop)
}

/// Finds a step of a run.
pub async fn find(db: &impl ConnectionTrait, run: &str, id: &str) -> Result<Option<Model>, DbErr> {
    if id.contains('\0') {
        return Ok(None); // PostgreSQL rejects NUL in text
    }
    Entity::find_by_id(id)
        .filter(Column::RunId.eq(run))
        .one(db)
        .await
}

/// Returns a part of the steps of a run.
pub async fn list(
    db: &impl ConnectionTrait,
    run: &str,
    range: ListRange<i64>,
) -> Result<ListSlice<Model>, DbErr> {
    let of_run = Entity::find().filter(Column::RunId.eq(run));
    range.load(db, of_run, Column::Position).await
}

/// Returns the steps of a run in order.
pub async fn list_for_run(db: &impl ConnectionTrait, run: &str) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::RunId.eq(run))
        .order_by_asc(Column::Position)
        .all(db)
        .await
}

/// Returns the steps of all runs of a thread, those of each run in order.
pub async fn list_for_thread(db: &impl ConnectionTrait, thread: &str) -> Result<Vec<Model>, DbErr> {
    let runs = Query::select()
        .column(thread_run::Column::Id)
        .from(thread_run::Entity)
        .and_where(thread_run::Column::ThreadId.eq(thread))
        .to_owned();
    Entity::find()
        .filter(Column::RunId.in_subquery(runs))
        .order_by_asc(Column::RunId)
        .order_by_asc(Column::Position)
        .all(db)
        .await
}
