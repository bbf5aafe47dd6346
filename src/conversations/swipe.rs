//! Table `message_swipes`: alternative texts of a message.
//!
//! A message that never had an alternative has no row here; its only text is its content.

use crate::ids::MessageId;
use crate::ids::RunId;
use crate::ids::SwipeId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "message_swipes")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: SwipeId,
    pub message_id: MessageId,
    pub position: i64,
    pub content: String,
    pub conversation_run_id: Option<RunId>,
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
