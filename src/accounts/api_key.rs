//! Table `api_keys`: creates, finds and revokes the API keys of users. Only their SHA-256 is
//! stored.

use base::clock::Timestamp;
use base::ids::{ApiKeyId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::SimpleExpr;
use sea_orm::{ExprTrait, PaginatorTrait};
use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::{secret_token, user};
use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};

/// Prefix of every key, so that leaked keys can be recognized.
pub const KEY_PREFIX: &str = "trp_";

/// Minimum interval between two updates of `last_used_at`, in milliseconds.
const TOUCH_INTERVAL_MS: i64 = 60_000;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "api_keys")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: ApiKeyId,
    pub user_id: UserId,
    pub name: String,
    pub key_hash: String,
    /// The first characters of the key, by which its owner recognizes it.
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

/// An API key as its owner sees it, without the secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct ApiKeyView {
    pub id: ApiKeyId,
    pub name: String,
    pub prefix: String,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
}

impl Model {
    /// Returns the document for the owner.
    pub fn view(&self) -> ApiKeyView {
        ApiKeyView {
            id: self.id,
            name: self.name.clone(),
            prefix: self.prefix.clone(),
            created_at: self.created_at,
            last_used_at: self.last_used_at,
        }
    }

    /// Returns whether `last_used_at` is due for an update.
    pub fn needs_touch(&self, now: Timestamp) -> bool {
        self.last_used_at
            .is_none_or(|it| now.ms_since(it) >= TOUCH_INTERVAL_MS)
    }
}

/// Creates a key and returns its text, which is not stored and cannot be shown again.
pub async fn create(
    db: &Db,
    user: UserId,
    name: String,
    now: Timestamp,
) -> Result<(Model, String), DbErr> {
    let key = format!("{KEY_PREFIX}{}", secret_token::generate());
    let row = ActiveModel {
        id: NotSet,
        user_id: Set(user),
        name: Set(name),
        key_hash: Set(secret_token::hash(&key)),
        prefix: Set(key.chars().take(8).collect()),
        created_at: Set(now),
        last_used_at: Set(None),
        revoked_at: Set(None),
    };
    let model = db
        .write(move |tx| Box::pin(async move { row.insert(tx).await }))
        .await?;
    Ok((model, key))
}

/// Returns a page of the keys of a user that are not revoked.
pub async fn list_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    page.load(select_for_user(user), Column::Id, db).await
}

/// Selects the keys of a user that are not revoked.
fn select_for_user(user: UserId) -> Select<Entity> {
    Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::RevokedAt.is_null())
}

/// Returns the number of keys of a user that are not revoked.
pub async fn count_for_user(db: &impl ConnectionTrait, user: UserId) -> Result<u64, DbErr> {
    select_for_user(user).count(db).await
}

/// Returns the key with this text and its user, if the key is not revoked and the user may sign in.
pub async fn find_active(
    db: &impl ConnectionTrait,
    key: &str,
) -> Result<Option<(Model, user::Model)>, DbErr> {
    let found = Entity::find()
        .find_also_related(user::Entity)
        .filter(Column::KeyHash.eq(secret_token::hash(key)))
        .filter(Column::RevokedAt.is_null())
        .filter(user::Column::Status.eq(user::UserStatus::Active))
        .one(db)
        .await?;
    Ok(found.and_then(|(key, user)| Some((key, user?))))
}

/// Returns whether a key exists and is not revoked.
pub async fn is_active(db: &impl ConnectionTrait, id: ApiKeyId) -> Result<bool, DbErr> {
    let key = Entity::find_by_id(id).filter(Column::RevokedAt.is_null());
    Ok(key.one(db).await?.is_some())
}

/// Updates `last_used_at` of a key.
pub async fn touch(db: &Db, id: ApiKeyId, now: Timestamp) -> Result<(), DbErr> {
    update(db, Column::LastUsedAt, now, Column::Id.eq(id))
        .await
        .map(|_| ())
}

/// Revokes a key of a user. Returns `false` if the user has no such key.
pub async fn revoke(db: &Db, user: UserId, id: ApiKeyId, now: Timestamp) -> Result<bool, DbErr> {
    let condition = Column::Id
        .eq(id)
        .and(Column::UserId.eq(user))
        .and(Column::RevokedAt.is_null());
    Ok(update(db, Column::RevokedAt, now, condition).await? == 1)
}

/// Revokes every key of a user in the caller's transaction and returns their ids.
pub async fn revoke_all(
    tx: &impl ConnectionTrait,
    user: UserId,
    now: Timestamp,
) -> Result<Vec<ApiKeyId>, DbErr> {
    let keys = select_for_user(user).all(tx).await?;
    let ids: Vec<ApiKeyId> = keys.into_iter().map(|key| key.id).collect();
    Entity::update_many()
        .col_expr(Column::RevokedAt, Expr::value(now))
        .filter(Column::Id.is_in(ids.clone()))
        .filter(Column::RevokedAt.is_null())
        .exec(tx)
        .await?;
    Ok(ids)
}

async fn update(
    db: &Db,
    column: Column,
    now: Timestamp,
    condition: SimpleExpr,
) -> Result<u64, DbErr> {
    let updated = db
        .write(move |tx| {
            Box::pin(async move {
                Entity::update_many()
                    .col_expr(column, Expr::value(now))
                    .filter(condition)
                    .exec(tx)
                    .await
            })
        })
        .await?;
    Ok(updated.rows_affected)
}
