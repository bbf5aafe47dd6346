//! Changes an account on behalf of its user or an admin, in one transaction: its profile, its
//! sessions and API keys, and its name in the user's memberships.

use base::clock::Timestamp;
use base::ids::{ApiKeyId, SessionId, UserId};
use sea_orm::{ConnectionTrait, DbErr};

use crate::accounts::user::{ProfileChange, UserError};
use crate::accounts::user_directory::{AdminUserChange, UserChange, UserChangeError};
use crate::accounts::{api_key, session, user, user_directory};
use crate::db::connect::Db;
use crate::spaces::{membership, roster_changes};

/// Why an account was not changed; nothing has been changed then.
#[derive(Debug, thiserror::Error)]
pub enum AccountChangeError {
    #[error("the name can be confused with that of another active member of a space")]
    NameTaken,
    #[error(transparent)]
    User(#[from] UserError),
    #[error(transparent)]
    Admin(#[from] UserChangeError),
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// An account after a change by its user.
#[derive(Debug)]
pub struct ChangedProfile {
    pub user: user::Model,
    /// The memberships with the new name; none if it did not change.
    pub memberships: Vec<membership::Model>,
    pub ended_sessions: Vec<SessionId>,
    pub revoked_keys: Vec<ApiKeyId>,
    /// The number of API keys that are not revoked.
    pub n_active_keys: u64,
}

/// Changes the account of `user`. A new password ends every session. With `revokes_keys`, every API
/// key is revoked.
///
/// # Errors
/// Returns `NameTaken`, `User` when the username is taken, or `Db` when the database fails.
pub async fn change_profile(
    db: &Db,
    user: &user::Model,
    change: ProfileChange,
    revokes_keys: bool,
    now: Timestamp,
) -> Result<ChangedProfile, AccountChangeError> {
    let id = user.id;
    let new_name = change.display_name.clone();
    let new_name = new_name.filter(|it| *it != user.display_name);
    let ends_sessions = change.password_hash.is_some();
    db.write(move |tx| {
        Box::pin(async move {
            let memberships = match new_name {
                Some(name) => rename(tx, id, &name).await?,
                None => Vec::new(),
            };
            Ok(ChangedProfile {
                memberships,
                user: user::update(tx, id, change).await?,
                ended_sessions: match ends_sessions {
                    true => session::revoke_all(tx, id).await?,
                    false => Vec::new(),
                },
                revoked_keys: match revokes_keys {
                    true => api_key::revoke_all(tx, id, now).await?,
                    false => Vec::new(),
                },
                n_active_keys: api_key::count_for_user(tx, id).await?,
            })
        })
    })
    .await
}

/// Changes an account on behalf of the admin `admin`. Returns the change and the memberships with
/// the new name; none if it did not change.
///
/// # Errors
/// Returns `NameTaken`, or `Admin` with the error of [`user_directory::change_user`].
pub async fn change_by_admin(
    db: &Db,
    admin: UserId,
    id: UserId,
    change: AdminUserChange,
) -> Result<(UserChange, Vec<membership::Model>), AccountChangeError> {
    db.write(move |tx| {
        Box::pin(async move {
            let changed = user_directory::change_user(tx, admin, id, change).await?;
            let memberships = match &changed.after.display_name {
                name if *name == changed.before.display_name => Vec::new(),
                name => rename(tx, id, name).await?,
            };
            Ok((changed, memberships))
        })
    })
    .await
}

async fn rename(
    tx: &impl ConnectionTrait,
    user: UserId,
    name: &str,
) -> Result<Vec<membership::Model>, AccountChangeError> {
    let renamed = roster_changes::rename_user(tx, user, name).await?;
    renamed.ok_or(AccountChangeError::NameTaken)
}
