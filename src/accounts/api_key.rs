//! Table `api_keys`: keys for programs, stored as hashes.

use crate::clock::Timestamp;
use crate::ids::ApiKeyId;
use crate::ids::UserId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "api_keys")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: ApiKeyId,
    pub user_id: UserId,
    pub name: String,
    pub key_hash: String,
    /// The first characters, by which its owner recognises it.
    pub prefix: String,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::accounts::user::Entity",
        from = "Column::UserId",
        to = "crate::accounts::user::Column::Id"
    )]
    User,
}

impl Related<crate::accounts::user::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::User.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
