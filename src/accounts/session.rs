//! Table `sessions`: creates, finds and ends the browser sessions of signed-in users.
//!
//! The token is 32 random bytes. Only the cookie contains it; the table stores its SHA-256.

use base::clock::Timestamp;
use base::ids::{SessionId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;
use sea_orm::{PaginatorTrait, QuerySelect};

use crate::accounts::{secret_token, user};
use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};

/// Lifetime of a session, in seconds.
pub const LIFETIME_SECS: i64 = 30 * 24 * 60 * 60;

/// Minimum interval between two updates of `last_seen_at`, in milliseconds.
const TOUCH_INTERVAL_MS: i64 = 60_000;

const MAX_USER_AGENT_CHARS: usize = 300;

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

/// A new session, with the only copy of its token.
#[derive(Debug)]
pub struct NewSession {
    pub session: Model,
    /// For the cookie.
    pub token: String,
}

/// Opens a session.
pub async fn open(
    db: &Db,
    user: UserId,
    user_agent: &str,
    now: Timestamp,
) -> Result<NewSession, DbErr> {
    let agent = user_agent.to_owned();
    db.write(move |tx| Box::pin(async move { open_in_transaction(tx, user, &agent, now).await }))
        .await
}

/// Opens a session in the caller's transaction. Also deletes expired sessions.
pub async fn open_in_transaction(
    tx: &impl ConnectionTrait,
    user: UserId,
    user_agent: &str,
    now: Timestamp,
) -> Result<NewSession, DbErr> {
    let token = secret_token::generate();
    let row = ActiveModel {
        id: NotSet,
        user_id: Set(user),
        token_hash: Set(secret_token::hash(&token)),
        created_at: Set(now),
        last_seen_at: Set(now),
        expires_at: Set(now.plus_ms(LIFETIME_SECS * 1000)),
        user_agent: Set(user_agent.chars().take(MAX_USER_AGENT_CHARS).collect()),
    };
    Entity::delete_many()
        .filter(Column::ExpiresAt.lte(now))
        .exec(tx)
        .await?;
    let session = row.insert(tx).await?;
    Ok(NewSession { session, token })
}

/// Returns the session of a token and its user, if the session is valid and the user may sign in.
pub async fn find_active(
    db: &impl ConnectionTrait,
    token: &str,
    now: Timestamp,
) -> Result<Option<(Model, user::Model)>, DbErr> {
    let found = Entity::find()
        .find_also_related(user::Entity)
        .filter(Column::TokenHash.eq(secret_token::hash(token)))
        .filter(Column::ExpiresAt.gt(now))
        .filter(user::Column::Status.eq(user::UserStatus::Active))
        .one(db)
        .await?;
    Ok(found.and_then(|(session, user)| Some((session, user?))))
}

/// Returns the number of sessions that have not expired.
pub async fn count_active(db: &impl ConnectionTrait, now: Timestamp) -> Result<u64, DbErr> {
    let active = Entity::find().filter(Column::ExpiresAt.gt(now));
    active.count(db).await
}

/// Returns whether a session exists: it was not ended, but may have expired.
pub async fn exists(db: &impl ConnectionTrait, id: SessionId) -> Result<bool, DbErr> {
    Ok(Entity::find_by_id(id).one(db).await?.is_some())
}

impl Model {
    /// Returns whether `last_seen_at` is due for an update.
    pub fn needs_touch(&self, now: Timestamp) -> bool {
        now.ms_since(self.last_seen_at) >= TOUCH_INTERVAL_MS
    }
}

/// Updates `last_seen_at` of a session.
pub async fn touch(db: &Db, id: SessionId, now: Timestamp) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            Entity::update_many()
                .col_expr(Column::LastSeenAt, Expr::value(now))
                .filter(Column::Id.eq(id))
                .filter(Column::LastSeenAt.lt(now))
                .exec(tx)
                .await
        })
    })
    .await
    .map(|_| ())
}

/// Returns a page of the sessions of a user that have not expired.
pub async fn list_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    now: Timestamp,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let active = Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::ExpiresAt.gt(now));
    page.load(active, Column::Id, db).await
}

/// Ends one session of a user. Returns `false` if the user has no such session.
pub async fn revoke(db: &Db, user: UserId, id: SessionId) -> Result<bool, DbErr> {
    let ended = db
        .write(move |tx| {
            Box::pin(async move {
                Entity::delete_many()
                    .filter(Column::UserId.eq(user))
                    .filter(Column::Id.eq(id))
                    .exec(tx)
                    .await
            })
        })
        .await?;
    Ok(ended.rows_affected == 1)
}

/// Ends every session of a user and returns their ids.
pub async fn revoke_all(tx: &impl ConnectionTrait, user: UserId) -> Result<Vec<SessionId>, DbErr> {
    let ids = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::UserId.eq(user))
        .into_tuple()
        .all(tx)
        .await?;
    Entity::delete_many()
        .filter(Column::UserId.eq(user))
        .exec(tx)
        .await?;
    Ok(ids)
}
