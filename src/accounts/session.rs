//! Table `sessions`: browsers that are signed in.
//!
//! The token is 32 random bytes and only in the cookie; here is its SHA-256.

use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::ids::UserId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "sessions")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: SessionId,
    pub user_id: UserId,
    pub token_hash: String,
    pub created_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub expires_at: Timestamp,
    pub user_agent: String,
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
