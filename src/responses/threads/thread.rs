//! Table `threads`: lists of messages that clients create under `/v1` and that runs extend. They are
//! unrelated to the conversations of spaces.

use base::clock::Timestamp;
use base::ids::UserId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "threads")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub user_id: UserId,
    /// Written by the caller; never interpreted by us.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    /// The `seq` of the next message.
    pub next_seq: i64,
    pub created_at: Timestamp,
    /// The last change of the thread or its messages; the retention time counts from it.
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
