//! What a person may hear and do, asked of the database each time: nothing of it is remembered.

use crate::accounts::user;
use crate::conversations::conversation;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::spaces::membership;
use crate::spaces::space;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;

/// The right to hear a space and its conversations.
#[derive(Clone, Debug)]
pub struct Access {
    pub space: SpaceId,
    /// The person's seat; an admin needs none to listen.
    pub seat: Option<membership::Model>,
}

/// The right to hear a conversation; `None` also when there is none.
pub async fn to_conversation(
    db: &impl ConnectionTrait,
    user: UserId,
    id: ConversationId,
) -> Result<Option<Access>, DbErr> {
    match conversation::Entity::find_by_id(id).one(db).await? {
        Some(conversation) => to_space(db, user, conversation.space_id).await,
        None => Ok(None),
    }
}

/// The right to hear a space; `None` also when there is none.
pub async fn to_space(
    db: &impl ConnectionTrait,
    user: UserId,
    id: SpaceId,
) -> Result<Option<Access>, DbErr> {
    let seat = membership::of_user(db, id, user).await?;
    let seat = seat.filter(|it| it.status == membership::Status::Active);
    let is_allowed = seat.is_some() || (is_admin(db, user).await? && exists(db, id).await?);
    Ok(is_allowed.then_some(Access { space: id, seat }))
}

/// Whether a person may type where they may listen, and in which seat.
///
/// # Errors
/// 403 without a seat, as an observer, and in an archived space.
pub async fn to_type(db: &impl ConnectionTrait, access: Access) -> ApiResult<MembershipId> {
    let Some(seat) = access.seat else {
        return Err(ApiError::forbidden("Join this space to take part in it."));
    };
    if seat.participation == membership::Participation::Observer {
        return Err(ApiError::forbidden("An observer only reads."));
    }
    let space = space::Entity::find_by_id(access.space).one(db).await?;
    match space.map(|it| it.status) {
        Some(space::Status::Active) => Ok(seat.id),
        Some(space::Status::Archived) => Err(ApiError::new(
            403,
            "space_archived",
            "This space is archived: one can read it, but nothing new is taken.",
        )),
        None => Err(ApiError::not_found()),
    }
}

async fn is_admin(db: &impl ConnectionTrait, user: UserId) -> Result<bool, DbErr> {
    let user = user::Entity::find_by_id(user).one(db).await?;
    Ok(user.is_some_and(|it| it.role == user::Role::Admin && it.status == user::Status::Active))
}

async fn exists(db: &impl ConnectionTrait, space: SpaceId) -> Result<bool, DbErr> {
    Ok(space::Entity::find_by_id(space).one(db).await?.is_some())
}
