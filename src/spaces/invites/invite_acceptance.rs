//! Adds a user to a space by an invite link: checks the invite, then writes its use, the membership
//! and, for a new user, the account and session in one transaction.
//!
//! **Invariant:** an invite is valid only while its creator still has the right to invite with its
//! role. It is invalid if the creator has left or was removed, demoted or disabled.

use base::clock::Timestamp;
use base::ids::{SpaceId, UserId};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait};

use crate::accounts::session::NewSession;
use crate::accounts::user::{NewUser, UserError};
use crate::accounts::{session, user};
use crate::db::connect::Db;
use crate::spaces::invites::invite;
use crate::spaces::membership::MembershipRole;
use crate::spaces::permissions::Access;
use crate::spaces::roster_changes::{AddMemberError, NewMember, NewUserMember};
use crate::spaces::{membership, permissions, roster_changes, space};

/// Why joining by an invite failed.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("no invite has this token")]
    NotFound,
    #[error("the invite was revoked, or its creator may no longer invite")]
    Invalid,
    #[error("This invitation has expired or has no uses left.")]
    UsedUp,
    #[error("This space is archived and cannot be joined.")]
    Archived,
    #[error("Another member of this space has a name that looks like this one. Choose another.")]
    NameTaken,
    #[error(transparent)]
    User(#[from] UserError),
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// A valid invite and its space; it may be expired or used up.
#[derive(Clone, Debug)]
pub struct OpenInvite {
    pub invite: invite::Model,
    pub space: space::Model,
}

/// The user who joins.
#[derive(Clone, Debug)]
pub enum JoiningUser {
    /// A user with an account. `display_name` is the name for this space if it differs from the
    /// account's.
    Existing {
        user: Box<user::Model>,
        display_name: Option<String>,
    },
    /// A user whose account is created on joining, with the name of that account.
    New(NewUser),
}

/// The result of joining.
#[derive(Debug)]
pub struct JoinResult {
    pub user: user::Model,
    pub membership: membership::Model,
    /// Whether the membership was created or reactivated by this call.
    pub is_new: bool,
    /// The session of an account that was created by this call.
    pub session: Option<NewSession>,
}

impl OpenInvite {
    /// Requires that new members can still join.
    ///
    /// # Errors
    /// Returns `Archived` if the space is archived, `UsedUp` if the invite has expired or has no
    /// uses left.
    pub fn require_open(&self, now: Timestamp) -> Result<(), JoinError> {
        if self.space.status == space::SpaceStatus::Archived {
            return Err(JoinError::Archived);
        }
        match self.invite.is_used_up(now) {
            true => Err(JoinError::UsedUp),
            false => Ok(()),
        }
    }
}

/// Finds the invite with this token and its space.
///
/// # Errors
/// Returns `NotFound` if no invite has this token; `Invalid` if it was revoked, its space was
/// deleted or its creator may no longer invite.
pub async fn find_open_invite(
    db: &impl ConnectionTrait,
    token: &str,
) -> Result<OpenInvite, JoinError> {
    let found = invite::find_by_token(db, token).await?;
    let invite = found.ok_or(JoinError::NotFound)?;
    let space = space::Entity::find_by_id(invite.space_id).one(db).await?;
    let space = space.ok_or(JoinError::Invalid)?;
    match invite.revoked_at.is_none() && has_valid_inviter(db, &invite).await? {
        true => Ok(OpenInvite { invite, space }),
        false => Err(JoinError::Invalid),
    }
}

/// Returns whether the creator of an invite may currently invite with its role.
async fn has_valid_inviter(
    db: &impl ConnectionTrait,
    invite: &invite::Model,
) -> Result<bool, DbErr> {
    can_invite(db, invite.space_id, invite.created_by, invite.role).await
}

/// Returns whether this user may currently invite others to a space with this role; `false` if the
/// account does not exist (`None`) or is disabled.
///
/// # Errors
/// Returns the database error if a query fails.
pub async fn can_invite(
    db: &impl ConnectionTrait,
    space: SpaceId,
    host: Option<UserId>,
    role: MembershipRole,
) -> Result<bool, DbErr> {
    let (Some(host), Some(act)) = (host, permissions::inviting_as(role)) else {
        return Ok(false);
    };
    let Some(host) = user::find_active(db, host).await? else {
        return Ok(false);
    };
    let membership = membership::find_for_user(db, space, host.id).await?;
    let access = Access::for_member(membership.as_ref(), host.role == user::UserRole::Admin);
    Ok(access.is_some_and(|it| it.can(act)))
}

/// Adds the user to the space. An active member keeps their membership and counts no use.
///
/// # Errors
/// Returns the reason as a [`JoinError`]; nothing is changed then, and no account is created.
pub async fn join(
    db: &Db,
    token: String,
    joiner: JoiningUser,
    user_agent: String,
    now: Timestamp,
) -> Result<JoinResult, JoinError> {
    // Checked first without a transaction, so that guessing tokens causes no writes.
    let space = find_open_invite(db.reader(), &token).await?.space.id;
    db.write(move |tx| {
        Box::pin(async move {
            space::lock(tx, space).await?.ok_or(JoinError::Invalid)?;
            let link = find_open_invite(tx, &token).await?;
            if let JoiningUser::Existing { user, .. } = &joiner
                && let Some(membership) = membership_of(tx, &link, user).await?
            {
                return Ok(existing_member((**user).clone(), membership));
            }
            link.require_open(now)?;
            if !invite::consume_use(tx, link.invite.id, now).await? {
                return Err(JoinError::UsedUp);
            }
            let (user, display_name, session) = match joiner {
                JoiningUser::Existing { user, display_name } => (*user, display_name, None),
                JoiningUser::New(new) => {
                    let user = user::create(tx, new, now).await?;
                    let session =
                        session::open_in_transaction(tx, user.id, &user_agent, now).await?;
                    (user, None, Some(session))
                }
            };
            let new_member = NewMember::User(NewUserMember {
                user: user.clone(),
                role: link.invite.role,
                display_name,
            });
            Ok(JoinResult {
                membership: roster_changes::insert_or_reactivate(tx, space, new_member, now)
                    .await?,
                user,
                is_new: true,
                session,
            })
        })
    })
    .await
}

/// Returns the user's active membership in the space of the invite.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn membership_of(
    db: &impl ConnectionTrait,
    open_invite: &OpenInvite,
    user: &user::Model,
) -> Result<Option<membership::Model>, DbErr> {
    let membership = membership::find_for_user(db, open_invite.space.id, user.id).await?;
    Ok(membership.filter(|it| it.status == membership::MembershipStatus::Active))
}

fn existing_member(user: user::Model, membership: membership::Model) -> JoinResult {
    JoinResult {
        user,
        membership,
        is_new: false,
        session: None,
    }
}

impl From<AddMemberError> for JoinError {
    fn from(error: AddMemberError) -> Self {
        match error {
            // Neither can happen: both were checked under the lock of the space.
            AddMemberError::AlreadyMember | AddMemberError::SpaceNotFound => Self::Invalid,
            AddMemberError::NameTaken => Self::NameTaken,
            AddMemberError::Db(error) => Self::Db(error),
        }
    }
}
