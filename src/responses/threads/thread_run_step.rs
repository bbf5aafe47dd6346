//! Table `thread_run_steps`: what a run did, in order: messages it wrote, and tools it called.

use base::clock::Timestamp;
use responses_api::threads::thread_status::{ThreadRunStepKind, ThreadRunStepStatus};
use sea_orm::entity::prelude::*;

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
    #[sea_orm(column_type = "JsonBinary")]
    pub step_details: Json,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub usage: Option<Json>,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub last_error: Option<Json>,
    pub created_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub cancelled_at: Option<Timestamp>,
    pub failed_at: Option<Timestamp>,
    pub expired_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
