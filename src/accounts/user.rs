//! Table `users`: people with an account.

use crate::clock::Timestamp;
use crate::ids::UserId;
use sea_orm::entity::prelude::*;
use serde::Deserialize;
use serde::Serialize;
use unicode_normalization::UnicodeNormalization;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "users")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: UserId,
    pub username: String,
    /// [`fold`] of the username: what must be unique.
    pub username_key: String,
    pub display_name: String,
    /// `None`: a guest, who lives by the session.
    pub password_hash: Option<String>,
    pub role: Role,
    pub status: Status,
    pub locale: String,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// What an account may do on the whole server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum, Serialize, Deserialize)]
#[sea_orm(
    rs_type = "String",
    db_type = "String(StringLen::N(32))",
    rename_all = "snake_case"
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Admin,
    User,
}

/// Whether an account may sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum, Serialize, Deserialize)]
#[sea_orm(
    rs_type = "String",
    db_type = "String(StringLen::N(32))",
    rename_all = "snake_case"
)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Active,
    Disabled,
}

/// The document `user` of the API.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    pub id: UserId,
    pub username: String,
    pub display_name: String,
    pub role: Role,
    pub status: Status,
    pub locale: String,
}

impl Model {
    /// What others may read of this account.
    pub fn view(&self) -> View {
        View {
            id: self.id,
            username: self.username.clone(),
            display_name: self.display_name.clone(),
            role: self.role,
            status: self.status,
            locale: self.locale.clone(),
        }
    }
}

/// A username as it is compared: NFKC, one case.
pub fn fold(username: &str) -> String {
    username.nfkc().collect::<String>().to_lowercase()
}

/// The account with this name, whatever its case.
pub async fn by_username(
    db: &impl ConnectionTrait,
    username: &str,
) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::UsernameKey.eq(fold(username)))
        .one(db)
        .await
}

/// Whether the server still waits for its first account.
pub async fn nobody_yet(db: &impl ConnectionTrait) -> Result<bool, DbErr> {
    Ok(Entity::find().one(db).await?.is_none())
}
