//! Table `space_invitations`: creates, revokes, accepts and declines invitations to a space that
//! are addressed to one user.
//!
//! **Invariant:** there is at most one pending invitation per space and user. The stored user id
//! need not exist, so that the inviter gets the same response for every id.

use base::clock::Timestamp;
use base::ids::{InvitationId, SpaceId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;
use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::user;
use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::db::string_enum::string_enum;
use crate::spaces::invites::invite_acceptance;
use crate::spaces::membership::MembershipRole;
use crate::spaces::roster_changes::{AddMemberError, NewMember, NewUserMember};
use crate::spaces::{membership, roster_changes, space};

/// How long an invitation can be accepted: 14 days.
const LIFETIME_MS: i64 = 14 * 24 * 3_600_000;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "space_invitations")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: InvitationId,
    pub space_id: SpaceId,
    /// The invited user; no foreign key.
    pub user_id: UserId,
    /// The role that accepting gives; never owner.
    pub role: MembershipRole,
    pub invited_by: UserId,
    pub status: InvitationStatus,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::spaces::space::Entity",
        from = "Column::SpaceId",
        to = "crate::spaces::space::Column::Id"
    )]
    Space,
}

impl Related<crate::spaces::space::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Space.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// Whether an invitation can be accepted, and if not, how it ended.
    #[schema(as = InvitationStatus)]
    InvitationStatus { Pending, Accepted, Declined, Revoked }
}

/// An invitation as members with the right to invite see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Invitation)]
pub struct InvitationView {
    pub id: InvitationId,
    pub space_id: SpaceId,
    pub user_id: UserId,
    pub role: MembershipRole,
    pub status: InvitationStatus,
    pub invited_by: UserId,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl Model {
    /// Returns the invitation's document for members with the right to invite.
    pub fn view(&self) -> InvitationView {
        InvitationView {
            id: self.id,
            space_id: self.space_id,
            user_id: self.user_id,
            role: self.role,
            status: self.status,
            invited_by: self.invited_by,
            created_at: self.created_at,
            expires_at: self.expires_at,
        }
    }

    fn is_pending(&self, now: Timestamp) -> bool {
        self.status == InvitationStatus::Pending && self.expires_at > now
    }
}

/// Why an invitation was not created, accepted or declined.
#[derive(Debug, thiserror::Error)]
pub enum InvitationError {
    #[error("the user has no such invitation")]
    NotFound,
    #[error("This invitation was already answered, was revoked, or has expired.")]
    Ended,
    #[error("This space is archived and cannot be joined.")]
    Archived,
    #[error("Another member of this space has a name that looks like this one. Choose another.")]
    NameTaken,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// A validated invitation to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewInvitation {
    pub space: SpaceId,
    pub user: UserId,
    pub role: MembershipRole,
    pub invited_by: UserId,
}

/// Creates an invitation, or returns the pending one unchanged. The flag is `true` if it is new.
///
/// # Errors
/// Returns [`InvitationError::NotFound`] if the space does not exist.
pub async fn create(
    db: &Db,
    new: NewInvitation,
    now: Timestamp,
) -> Result<(Model, bool), InvitationError> {
    db.write(move |tx| {
        Box::pin(async move {
            let space = space::lock(tx, new.space).await?;
            space.ok_or(InvitationError::NotFound)?;
            let present = Entity::find()
                .filter(Column::SpaceId.eq(new.space))
                .filter(Column::UserId.eq(new.user))
                .filter(Column::Status.eq(InvitationStatus::Pending))
                .one(tx)
                .await?;
            match present {
                Some(present) if present.is_pending(now) => return Ok((present, false)),
                Some(expired) => {
                    end_pending(tx, expired.id, InvitationStatus::Revoked).await?;
                }
                None => {}
            }
            let row = ActiveModel {
                id: NotSet,
                space_id: Set(new.space),
                user_id: Set(new.user),
                role: Set(new.role),
                invited_by: Set(new.invited_by),
                status: Set(InvitationStatus::Pending),
                created_at: Set(now),
                expires_at: Set(now.plus_ms(LIFETIME_MS)),
            };
            Ok((row.insert(tx).await?, true))
        })
    })
    .await
}

/// Returns a page of the pending invitations of a space.
pub async fn list_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
    now: Timestamp,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let pending = select_pending(now).filter(Column::SpaceId.eq(space));
    page.load(pending, Column::Id, db).await
}

/// Returns a page of the pending invitations of a user.
pub async fn list_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    now: Timestamp,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let pending = select_pending(now).filter(Column::UserId.eq(user));
    page.load(pending, Column::Id, db).await
}

fn select_pending(now: Timestamp) -> Select<Entity> {
    Entity::find()
        .filter(Column::Status.eq(InvitationStatus::Pending))
        .filter(Column::ExpiresAt.gt(now))
}

/// Revokes a pending invitation. Returns `false` if it is no longer pending.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn revoke(db: &Db, id: InvitationId) -> Result<bool, DbErr> {
    db.write(move |tx| {
        Box::pin(async move { end_pending(tx, id, InvitationStatus::Revoked).await })
    })
    .await
}

/// Declines an invitation of a user.
///
/// # Errors
/// Returns [`InvitationError::NotFound`] if it is not theirs, [`InvitationError::Ended`] if it is
/// no longer pending.
pub async fn decline(
    db: &Db,
    id: InvitationId,
    user: UserId,
    now: Timestamp,
) -> Result<(), InvitationError> {
    db.write(move |tx| {
        Box::pin(async move {
            let found = find_for_user(tx, id, user).await?;
            match found.is_pending(now) && end_pending(tx, id, InvitationStatus::Declined).await? {
                true => Ok(()),
                false => Err(InvitationError::Ended),
            }
        })
    })
    .await
}

/// Accepts an invitation: the user becomes an active member. An active member keeps the membership
/// they have.
///
/// # Errors
/// Returns [`InvitationError::NotFound`] if it is not theirs, [`InvitationError::Ended`] if it is
/// no longer pending, [`InvitationError::Archived`] or [`InvitationError::NameTaken`]; nothing is
/// changed then.
pub async fn accept(
    db: &Db,
    id: InvitationId,
    user: user::Model,
    display_name: Option<String>,
    now: Timestamp,
) -> Result<membership::Model, InvitationError> {
    let space = find_for_user(db.reader(), id, user.id).await?.space_id;
    db.write(move |tx| {
        Box::pin(async move {
            let space = space::lock(tx, space).await?;
            let space = space.ok_or(InvitationError::NotFound)?;
            let found = find_for_user(tx, id, user.id).await?;
            if !found.is_pending(now) {
                return Err(InvitationError::Ended);
            }
            if space.status == space::SpaceStatus::Archived {
                return Err(InvitationError::Archived);
            }
            // An invitation is valid only while its author still has the right to invite.
            let author = Some(found.invited_by);
            if !invite_acceptance::can_invite(tx, space.id, author, found.role).await? {
                return Err(InvitationError::Ended);
            }
            end_pending(tx, id, InvitationStatus::Accepted).await?;
            let present = membership::find_for_user(tx, space.id, user.id).await?;
            if let Some(membership) =
                present.filter(|it| it.status == membership::MembershipStatus::Active)
            {
                return Ok(membership);
            }
            let new_member = NewMember::User(NewUserMember {
                user,
                role: found.role,
                display_name,
            });
            roster_changes::insert_or_reactivate(tx, space.id, new_member, now)
                .await
                .map_err(InvitationError::from)
        })
    })
    .await
}

/// Returns an invitation, whatever its status. The caller checks the access to its space.
pub async fn find(db: &impl ConnectionTrait, id: InvitationId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

async fn find_for_user(
    db: &impl ConnectionTrait,
    id: InvitationId,
    user: UserId,
) -> Result<Model, InvitationError> {
    let found = Entity::find_by_id(id)
        .filter(Column::UserId.eq(user))
        .one(db)
        .await?;
    found.ok_or(InvitationError::NotFound)
}

/// Ends a pending invitation. Returns `false` if it is no longer pending.
async fn end_pending(
    tx: &impl ConnectionTrait,
    id: InvitationId,
    status: InvitationStatus,
) -> Result<bool, DbErr> {
    let ended = Entity::update_many()
        .col_expr(Column::Status, Expr::value(status))
        .filter(Column::Id.eq(id))
        .filter(Column::Status.eq(InvitationStatus::Pending))
        .exec(tx)
        .await?;
    Ok(ended.rows_affected == 1)
}

impl From<AddMemberError> for InvitationError {
    fn from(error: AddMemberError) -> Self {
        match error {
            AddMemberError::NameTaken => Self::NameTaken,
            AddMemberError::AlreadyMember | AddMemberError::SpaceNotFound => Self::NotFound,
            AddMemberError::Db(error) => Self::Db(error),
        }
    }
}
