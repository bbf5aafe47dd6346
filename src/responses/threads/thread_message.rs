//! Table `thread_messages`: the messages of a thread, ordered by `seq`.

use base::clock::Timestamp;
use responses_api::threads::thread_status::{ThreadMessageRole, ThreadMessageStatus};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "thread_messages")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub thread_id: String,
    /// The position in the thread, unique in it and never reused.
    pub seq: i64,
    pub role: ThreadMessageRole,
    /// A list of content parts, as the API returns them.
    #[sea_orm(column_type = "JsonBinary")]
    pub content: Json,
    pub status: ThreadMessageStatus,
    pub assistant_id: Option<String>,
    /// The run that wrote it.
    pub run_id: Option<String>,
    /// The only run whose context contains it. Such a message is in no list.
    pub hidden_for_run_id: Option<String>,
    /// Written by the caller; never interpreted by us.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub incomplete_details: Option<Json>,
    pub created_at: Timestamp,
    /// When it ended, completed or not.
    pub completed_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
