//! Checks whether a user shares a space with another user or with characters: both are active
//! members of the same space. Counts the spaces of users.

use std::collections::{HashMap, HashSet};

use base::ids::{CharacterId, MembershipId, UserId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect, QueryTrait, Select,
};

use crate::spaces::membership::{Column, Entity, MembershipStatus};

/// Returns whether two users share a space.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn is_shared_by_users(
    db: &impl ConnectionTrait,
    one: UserId,
    other: UserId,
) -> Result<bool, DbErr> {
    exists(db, co_members(one).filter(Column::UserId.eq(other))).await
}

/// Returns whether a user and a character share a space.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn is_shared_with_character(
    db: &impl ConnectionTrait,
    user: UserId,
    character: CharacterId,
) -> Result<bool, DbErr> {
    exists(
        db,
        co_members(user).filter(Column::CharacterId.eq(character)),
    )
    .await
}

/// Returns those of these characters with which the user shares a space.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn list_shared_characters(
    db: &impl ConnectionTrait,
    user: UserId,
    characters: impl IntoIterator<Item = CharacterId>,
) -> Result<HashSet<CharacterId>, DbErr> {
    let shared: Vec<CharacterId> = co_members(user)
        .filter(Column::CharacterId.is_in(characters))
        .select_only()
        .column(Column::CharacterId)
        .into_tuple()
        .all(db)
        .await?;
    Ok(shared.into_iter().collect())
}

/// Selects the active memberships of all spaces of a user.
fn co_members(user: UserId) -> Select<Entity> {
    let spaces = Entity::find()
        .select_only()
        .column(Column::SpaceId)
        .filter(Column::UserId.eq(user))
        .filter(Column::Status.eq(MembershipStatus::Active));
    Entity::find()
        .filter(Column::Status.eq(MembershipStatus::Active))
        .filter(Column::SpaceId.in_subquery(spaces.into_query()))
}

async fn exists(db: &impl ConnectionTrait, shared: Select<Entity>) -> Result<bool, DbErr> {
    let shared = shared.select_only().column(Column::Id);
    let found: Option<MembershipId> = shared.into_tuple().one(db).await?;
    Ok(found.is_some())
}

/// Returns the number of spaces of each of these users; users without a space are missing.
pub async fn count_spaces_by_user(
    db: &impl ConnectionTrait,
    users: &[UserId],
) -> Result<HashMap<UserId, i64>, DbErr> {
    let counted: Vec<(UserId, i64)> = Entity::find()
        .select_only()
        .column(Column::UserId)
        .column_as(Column::Id.count(), "n")
        .filter(Column::UserId.is_in(users.iter().copied()))
        .filter(Column::Status.eq(MembershipStatus::Active))
        .group_by(Column::UserId)
        .into_tuple()
        .all(db)
        .await?;
    Ok(counted.into_iter().collect())
}
