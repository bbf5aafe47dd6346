//! Table `assets`: bytes by their SHA-256, with a media type that was sniffed, not believed.

use crate::clock::Timestamp;
use crate::ids::AssetId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "assets")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: AssetId,
    pub sha256: String,
    pub media_type: String,
    #[sea_orm(column_type = "Blob")]
    pub bytes: Vec<u8>,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
