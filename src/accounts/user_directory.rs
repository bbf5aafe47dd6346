//! Searches and changes accounts for admins, and summarizes the sessions and activity of users.
//!
//! **Invariant:** there is always an active admin. Changes lock the rows of all active admins, so
//! that two admins cannot demote each other concurrently.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{SessionId, UserId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, Func, LikeExpr, LockType, SimpleExpr};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect,
};

use crate::accounts::user::{ActiveModel, Column, Entity, Model, UserRole, UserStatus};
use crate::accounts::{api_key, session, username_password};
use crate::db::reading::page::{PageOf, PageQuery};

/// Returns a page of the accounts with this status whose username or display name contains `text`,
/// ignoring case. For display names SQLite ignores case only in ASCII.
pub async fn search(
    db: &impl ConnectionTrait,
    text: Option<&str>,
    status: Option<UserStatus>,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let mut found = Entity::find();
    if let Some(text) = text {
        let folded = username_password::normalize_username(text);
        let display_name = Expr::expr(Func::lower(Expr::col(Column::DisplayName)));
        found = found.filter(
            contains_text(Expr::col(Column::UsernameKey), &folded)
                .or(contains_text(display_name, &folded))
                .or(contains_text(Expr::col(Column::DisplayName), text)),
        );
    }
    if let Some(status) = status {
        found = found.filter(Column::Status.eq(status));
    }
    page.load(found, Column::Id, db).await
}

fn contains_text(column: Expr, text: &str) -> SimpleExpr {
    let plain = text
        .replace('\\', r"\\")
        .replace('%', r"\%")
        .replace('_', r"\_");
    column.like(LikeExpr::new(format!("%{plain}%")).escape('\\'))
}

/// Number of a user's browser sessions, and the time of their latest activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignInSummary {
    pub n_sessions: i64,
    /// Activity by a session that has not expired, or by a key that is not revoked.
    pub last_seen_at: Option<Timestamp>,
}

/// Returns the sign-in summaries of these users; users without sessions and keys are missing.
pub async fn load_sign_in_summaries(
    db: &impl ConnectionTrait,
    users: &[UserId],
    now: Timestamp,
) -> Result<HashMap<UserId, SignInSummary>, DbErr> {
    let sessions: Vec<(UserId, i64, Timestamp)> = session::Entity::find()
        .select_only()
        .column(session::Column::UserId)
        .column_as(session::Column::Id.count(), "n")
        .column_as(session::Column::LastSeenAt.max(), "last")
        .filter(session::Column::UserId.is_in(users.iter().copied()))
        .filter(session::Column::ExpiresAt.gt(now))
        .group_by(session::Column::UserId)
        .into_tuple()
        .all(db)
        .await?;
    let keys: Vec<(UserId, Option<Timestamp>)> = api_key::Entity::find()
        .select_only()
        .column(api_key::Column::UserId)
        .column_as(api_key::Column::LastUsedAt.max(), "last")
        .filter(api_key::Column::UserId.is_in(users.iter().copied()))
        .filter(api_key::Column::RevokedAt.is_null())
        .group_by(api_key::Column::UserId)
        .into_tuple()
        .all(db)
        .await?;
    let mut visits: HashMap<UserId, SignInSummary> = HashMap::new();
    for (user, n_sessions, last) in sessions {
        let last_seen_at = Some(last);
        visits.insert(
            user,
            SignInSummary {
                n_sessions,
                last_seen_at,
            },
        );
    }
    for (user, last) in keys {
        let summary = visits.entry(user).or_default();
        summary.last_seen_at = [summary.last_seen_at, last].into_iter().flatten().max();
    }
    Ok(visits)
}

/// Changes that an admin makes to an account; `None` keeps a value.
#[derive(Clone, Debug, Default)]
pub struct AdminUserChange {
    pub role: Option<UserRole>,
    pub status: Option<UserStatus>,
    pub display_name: Option<String>,
    pub password_hash: Option<String>,
}

/// An account before and after a change.
#[derive(Clone, Debug)]
pub struct UserChange {
    pub before: Model,
    pub after: Model,
    /// The sessions that the change ended.
    pub revoked_sessions: Vec<SessionId>,
}

/// Why an account was not changed.
#[derive(Debug, thiserror::Error)]
pub enum UserChangeError {
    #[error("no user has this id")]
    NotFound,
    #[error("Only an admin may do this.")]
    NotAdmin,
    #[error("This is the last active admin. Make another user an admin first.")]
    LastAdmin,
    #[error("A guest has no password. Set one before making the guest an admin.")]
    GuestWithoutPassword,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Changes an account on behalf of the admin `admin`. A new password or disabling the account ends
/// all its sessions.
///
/// # Errors
/// Returns a [`UserChangeError`]; nothing has been changed then.
pub async fn change_user(
    tx: &impl ConnectionTrait,
    admin: UserId,
    id: UserId,
    change: AdminUserChange,
) -> Result<UserChange, UserChangeError> {
    let admins = lock_admins(tx).await?;
    // The admin may have lost the role since the request was authorized.
    if !admins.contains(&admin) {
        return Err(UserChangeError::NotAdmin);
    }
    let found = Entity::find_by_id(id)
        .lock(LockType::Update)
        .one(tx)
        .await?;
    let before = found.ok_or(UserChangeError::NotFound)?;
    let ends_sessions =
        change.password_hash.is_some() || change.status == Some(UserStatus::Disabled);
    let after = apply_change(before.clone(), change);
    if admins == [id] && !is_active_admin(&after) {
        return Err(UserChangeError::LastAdmin);
    }
    if after.role == UserRole::Admin && after.is_guest() {
        return Err(UserChangeError::GuestWithoutPassword);
    }
    save(tx, &before, &after).await?;
    let revoked_sessions = match ends_sessions {
        true => session::revoke_all(tx, id).await?,
        false => Vec::new(),
    };
    Ok(UserChange {
        before,
        after,
        revoked_sessions,
    })
}

/// Locks and returns the active admins in the order of their ids, until this transaction ends.
async fn lock_admins(tx: &impl ConnectionTrait) -> Result<Vec<UserId>, DbErr> {
    let admins = Entity::find()
        .filter(Column::Role.eq(UserRole::Admin))
        .filter(Column::Status.eq(UserStatus::Active))
        .order_by_asc(Column::Id)
        .lock(LockType::Update)
        .all(tx)
        .await?;
    Ok(admins.iter().map(|it| it.id).collect())
}

fn is_active_admin(user: &Model) -> bool {
    user.role == UserRole::Admin && user.status == UserStatus::Active
}

fn apply_change(mut user: Model, change: AdminUserChange) -> Model {
    user.role = change.role.unwrap_or(user.role);
    user.status = change.status.unwrap_or(user.status);
    user.display_name = change.display_name.unwrap_or(user.display_name);
    user.password_hash = change.password_hash.or(user.password_hash);
    user
}

async fn save(tx: &impl ConnectionTrait, before: &Model, after: &Model) -> Result<(), DbErr> {
    if before == after {
        return Ok(());
    }
    let row = ActiveModel {
        role: Set(after.role),
        status: Set(after.status),
        display_name: Set(after.display_name.clone()),
        password_hash: Set(after.password_hash.clone()),
        ..before.clone().into_active_model()
    };
    row.update(tx).await.map(|_| ())
}
