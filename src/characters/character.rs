//! Table `characters`: cards, each the whole document it came as.

use crate::clock::Timestamp;
use crate::ids::AssetId;
use crate::ids::CharacterId;
use crate::ids::UserId;
use sea_orm::entity::prelude::*;
use serde::Deserialize;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "characters")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: CharacterId,
    pub owner_id: Option<UserId>,
    pub name: String,
    /// The V2 or V3 document, unknown fields kept.
    #[sea_orm(column_type = "JsonBinary")]
    pub card: Json,
    pub spec_version: String,
    pub avatar_id: Option<AssetId>,
    pub content_hash: String,
    pub status: Status,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A deleted card stays for the seats that still speak with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum, Serialize, Deserialize)]
#[sea_orm(
    rs_type = "String",
    db_type = "String(StringLen::N(32))",
    rename_all = "snake_case"
)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Active,
    Deleted,
}
