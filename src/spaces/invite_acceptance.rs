//! Coming in by an invite: the use, the account if there is none yet, the seat and the session are
//! one transaction.
//!
//! **Invariant:** an invite is as good as whoever made it is now. If they have left, were removed,
//! demoted or disabled, so that they may not let anybody in with its role, it opens nothing.

use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::accounts::session::NewSession;
use crate::accounts::user::{NewUser, UserError};
use crate::accounts::{session, user};
use crate::clock::Timestamp;
use crate::db::connect::Db;
use crate::ids::{SpaceId, UserId};
use crate::spaces::membership::MembershipRole;
use crate::spaces::membership_changes::{AddMemberError, NewMember, NewUserMember};
use crate::spaces::permissions::Access;
use crate::spaces::{invite, lifecycle, membership, membership_changes, permissions, space};

/// Why an invite let nobody in.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("no invite has this token")]
    NotFound,
    #[error("it was taken back, or nobody who may invite stands behind it")]
    Invalid,
    #[error("This invitation has run out, or as many people have used it as may.")]
    UsedUp,
    #[error("This space is archived: nobody can join it now.")]
    Archived,
    #[error("Another member of this space has a name that looks like this one. Choose another.")]
    NameTaken,
    #[error(transparent)]
    User(#[from] UserError),
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// What an invite opens; it may be spent.
#[derive(Clone, Debug)]
pub struct OpenInvite {
    pub invite: invite::Model,
    pub space: space::Model,
}

/// Who comes in.
#[derive(Clone, Debug)]
pub enum JoiningUser {
    /// A person with an account, and the name for this space if it is not the account's.
    Existing {
        user: user::Model,
        display_name: Option<String>,
    },
    /// A person for whom an account is made, with the name of that account.
    New(NewUser),
}

/// Somebody inside.
#[derive(Debug)]
pub struct JoinResult {
    pub user: user::Model,
    pub membership: membership::Model,
    /// Whether the seat was taken just now.
    pub is_new: bool,
    /// Of an account that was made just now.
    pub session: Option<NewSession>,
}

impl OpenInvite {
    /// Whether anybody may still come in.
    ///
    /// # Errors
    /// [`JoinError::Archived`], [`JoinError::Spent`].
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

/// Finds what a token opens.
///
/// # Errors
/// [`JoinError::Unknown`], [`JoinError::Dead`].
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

/// Whether the one who made an invite may let people in with its role now.
async fn has_valid_inviter(
    db: &impl ConnectionTrait,
    invite: &invite::Model,
) -> Result<bool, DbErr> {
    can_invite(db, invite.space_id, invite.created_by, invite.role).await
}

/// Whether this person may let people into a space with this role now; `None`: the account is gone.
///
/// # Errors
/// When the database fails.
pub async fn can_invite(
    db: &impl ConnectionTrait,
    space: SpaceId,
    host: Option<UserId>,
    role: MembershipRole,
) -> Result<bool, DbErr> {
    let (Some(host), Some(act)) = (host, permissions::inviting_as(role)) else {
        return Ok(false);
    };
    let host = user::Entity::find_by_id(host)
        .filter(user::Column::Status.eq(user::UserStatus::Active))
        .one(db)
        .await?;
    let Some(host) = host else {
        return Ok(false);
    };
    let membership = membership::find_for_user(db, space, host.id).await?;
    let access = Access::for_member(membership.as_ref(), host.role == user::UserRole::Admin);
    Ok(access.is_some_and(|it| it.can(act)))
}

/// Lets somebody in. Who sits there already stays where they are, and takes no use.
///
/// # Errors
/// Why not; then nothing has changed, and no account was made.
pub async fn join(
    db: &Db,
    token: String,
    joiner: JoiningUser,
    user_agent: String,
    now: Timestamp,
) -> Result<JoinResult, JoinError> {
    // Looked at first: a guess costs no writing transaction.
    let space = find_open_invite(db.reader(), &token).await?.space.id;
    db.write(move |tx| {
        Box::pin(async move {
            lifecycle::lock(tx, space)
                .await?
                .ok_or(JoinError::Invalid)?;
            let door = find_open_invite(tx, &token).await?;
            if let JoiningUser::Existing { user, .. } = &joiner
                && let Some(seat) = membership_of(tx, &door, user).await?
            {
                return Ok(existing_member(user.clone(), seat));
            }
            door.require_open(now)?;
            if !invite::consume_use(tx, door.invite.id, now).await? {
                return Err(JoinError::UsedUp);
            }
            let (user, display_name, session) = match joiner {
                JoiningUser::Existing { user, display_name } => (user, display_name, None),
                JoiningUser::New(new) => {
                    let user = user::create(tx, new, now).await?;
                    let session =
                        session::open_in_transaction(tx, user.id, &user_agent, now).await?;
                    (user, None, Some(session))
                }
            };
            let newcomer = NewMember::User(NewUserMember {
                user: user.clone(),
                role: door.invite.role,
                display_name,
            });
            Ok(JoinResult {
                membership: membership_changes::insert_or_reactivate(tx, space, newcomer, now)
                    .await?,
                user,
                is_new: true,
                session,
            })
        })
    })
    .await
}

/// The seat that somebody has behind a door.
///
/// # Errors
/// When the database fails.
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
            // Under the lock of the space neither can be: it was looked at a moment ago.
            AddMemberError::AlreadyMember | AddMemberError::SpaceNotFound => Self::Invalid,
            AddMemberError::NameTaken => Self::NameTaken,
            AddMemberError::Db(error) => Self::Db(error),
        }
    }
}
