//! Coming in by an invite: the use, the account if there is none yet, the seat and the session are
//! one transaction.
//!
//! **Invariant:** an invite is as good as whoever made it is now. If they have left, were removed,
//! demoted or disabled, so that they may not let anybody in with its role, it opens nothing.

use crate::accounts::session;
use crate::accounts::session::NewSession;
use crate::accounts::user;
use crate::accounts::user::NewUser;
use crate::accounts::user::UserError;
use crate::clock::Timestamp;
use crate::db::connect::Db;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::spaces::invite;
use crate::spaces::membership;
use crate::spaces::membership::MembershipRole;
use crate::spaces::permissions;
use crate::spaces::permissions::Standing;
use crate::spaces::roster;
use crate::spaces::roster::Newcomer;
use crate::spaces::roster::Person;
use crate::spaces::roster::SeatError;
use crate::spaces::space;
use crate::spaces::tenancy;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;

/// Why an invite let nobody in.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("no invite has this token")]
    Unknown,
    #[error("it was taken back, or nobody who may invite stands behind it")]
    Dead,
    #[error("This invitation has run out, or as many people have used it as may.")]
    Spent,
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
pub struct Door {
    pub invite: invite::Model,
    pub space: space::Model,
}

/// Who comes in.
#[derive(Clone, Debug)]
pub enum Joiner {
    /// A person with an account, and the name for this space if it is not the account's.
    Known {
        user: user::Model,
        display_name: Option<String>,
    },
    /// A person for whom an account is made, with the name of that account.
    New(NewUser),
}

/// Somebody inside.
#[derive(Debug)]
pub struct Joined {
    pub user: user::Model,
    pub seat: membership::Model,
    /// Whether the seat was taken just now.
    pub is_new: bool,
    /// Of an account that was made just now.
    pub session: Option<NewSession>,
}

impl Door {
    /// Whether anybody may still come in.
    ///
    /// # Errors
    /// [`JoinError::Archived`], [`JoinError::Spent`].
    pub fn must_be_open(&self, now: Timestamp) -> Result<(), JoinError> {
        if self.space.status == space::SpaceStatus::Archived {
            return Err(JoinError::Archived);
        }
        match self.invite.is_spent(now) {
            true => Err(JoinError::Spent),
            false => Ok(()),
        }
    }
}

/// Finds what a token opens.
///
/// # Errors
/// [`JoinError::Unknown`], [`JoinError::Dead`].
pub async fn door(db: &impl ConnectionTrait, token: &str) -> Result<Door, JoinError> {
    let found = invite::by_token(db, token).await?;
    let invite = found.ok_or(JoinError::Unknown)?;
    let space = space::Entity::find_by_id(invite.space_id).one(db).await?;
    let space = space.ok_or(JoinError::Dead)?;
    match invite.revoked_at.is_none() && has_a_host(db, &invite).await? {
        true => Ok(Door { invite, space }),
        false => Err(JoinError::Dead),
    }
}

/// Whether the one who made an invite may let people in with its role now.
async fn has_a_host(db: &impl ConnectionTrait, invite: &invite::Model) -> Result<bool, DbErr> {
    may_let_in(db, invite.space_id, invite.created_by, invite.role).await
}

/// Whether this person may let people into a space with this role now; `None`: the account is gone.
///
/// # Errors
/// When the database fails.
pub async fn may_let_in(
    db: &impl ConnectionTrait,
    space: SpaceId,
    host: Option<UserId>,
    role: MembershipRole,
) -> Result<bool, DbErr> {
    let (Some(host), Some(act)) = (host, permissions::letting_in_as(role)) else {
        return Ok(false);
    };
    let host = user::Entity::find_by_id(host)
        .filter(user::Column::Status.eq(user::UserStatus::Active))
        .one(db)
        .await?;
    let Some(host) = host else {
        return Ok(false);
    };
    let seat = membership::of_user(db, space, host.id).await?;
    let standing = Standing::of(seat.as_ref(), host.role == user::UserRole::Admin);
    Ok(standing.is_some_and(|it| it.may(act)))
}

/// Lets somebody in. Who sits there already stays where they are, and takes no use.
///
/// # Errors
/// Why not; then nothing has changed, and no account was made.
pub async fn join(
    db: &Db,
    token: String,
    joiner: Joiner,
    user_agent: String,
    now: Timestamp,
) -> Result<Joined, JoinError> {
    // Looked at first: a guess costs no writing transaction.
    let space = door(db.reader(), &token).await?.space.id;
    db.write(move |tx| {
        Box::pin(async move {
            tenancy::locked(tx, space).await?.ok_or(JoinError::Dead)?;
            let door = door(tx, &token).await?;
            if let Joiner::Known { user, .. } = &joiner
                && let Some(seat) = seat_of(tx, &door, user).await?
            {
                return Ok(inside(user.clone(), seat));
            }
            door.must_be_open(now)?;
            if !invite::take_use(tx, door.invite.id, now).await? {
                return Err(JoinError::Spent);
            }
            let (user, display_name, session) = match joiner {
                Joiner::Known { user, display_name } => (user, display_name, None),
                Joiner::New(new) => {
                    let user = user::create(tx, new, now).await?;
                    let session =
                        session::open_in_transaction(tx, user.id, &user_agent, now).await?;
                    (user, None, Some(session))
                }
            };
            let newcomer = Newcomer::User(Person {
                user: user.clone(),
                role: door.invite.role,
                display_name,
            });
            Ok(Joined {
                seat: roster::take_seat(tx, space, newcomer, now).await?,
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
pub async fn seat_of(
    db: &impl ConnectionTrait,
    door: &Door,
    user: &user::Model,
) -> Result<Option<membership::Model>, DbErr> {
    let seat = membership::of_user(db, door.space.id, user.id).await?;
    Ok(seat.filter(|it| it.status == membership::MembershipStatus::Active))
}

fn inside(user: user::Model, seat: membership::Model) -> Joined {
    Joined {
        user,
        seat,
        is_new: false,
        session: None,
    }
}

impl From<SeatError> for JoinError {
    fn from(error: SeatError) -> Self {
        match error {
            // Under the lock of the space neither can be: it was looked at a moment ago.
            SeatError::AlreadyMember | SeatError::Gone => Self::Dead,
            SeatError::NameTaken => Self::NameTaken,
            SeatError::Db(error) => Self::Db(error),
        }
    }
}
