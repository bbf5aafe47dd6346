//! Table `assistants`: the settings that a client stores for its runs of threads. A run keeps a copy
//! of them.

use base::clock::Timestamp;
use base::ids::UserId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "assistants")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub user_id: UserId,
    pub name: Option<String>,
    pub description: Option<String>,
    pub instructions: Option<String>,
    pub model: String,
    /// A list of tools, as the client sent them.
    #[sea_orm(column_type = "JsonBinary")]
    pub tools: Json,
    /// Written by the caller; never interpreted by us.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub response_format: Option<Json>,
    pub created_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
