//! Adds members to a space and removes them in the database, under the lock of the space; rejects a
//! user whose name looks like another member's; and updates the names and avatars shown in
//! memberships.
//!
//! **Invariant:** a user or a character has one membership per space. A member who comes back gets
//! the earlier membership again, so that history keeps one author.

use base::clock::Timestamp;
use base::ids::{MembershipId, SpaceId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Expr, LockType, SimpleExpr};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect,
};

use crate::accounts::confusable_names::NameSkeleton;
use crate::accounts::user;
use crate::characters::character;
use crate::db::connect::Db;
use crate::spaces::maintenance::guest_cleanup;
use crate::spaces::membership::{
    ActiveModel, Column, CopilotMode, Entity, MembershipKind, MembershipRole, MembershipStatus,
    Model, Participation,
};
use crate::spaces::{membership, needs_step, space};

/// Why a member was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddMemberError {
    #[error("They are already a member of this space.")]
    AlreadyMember,
    #[error("the space does not exist")]
    SpaceNotFound,
    #[error("Another member of this space has a name that looks like this one. Choose another.")]
    NameTaken,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// The user or character to add.
#[derive(Clone, Debug)]
pub enum NewMember {
    User(NewUserMember),
    Character(character::Model),
}

/// A user to add.
#[derive(Clone, Debug)]
pub struct NewUserMember {
    pub user: user::Model,
    pub role: MembershipRole,
    /// The name for this space; `None`: the one of an earlier membership, else the account's.
    pub display_name: Option<String>,
}

impl NewUserMember {
    /// Returns the name shown in the space, and the name chosen for this space, if any.
    fn display_names(&self, earlier: Option<&Model>) -> (String, Option<String>) {
        let earlier = earlier.and_then(|it| it.own_display_name.clone());
        let own = self.display_name.clone().or(earlier);
        let own = own.filter(|it| *it != self.user.display_name);
        (
            own.clone()
                .unwrap_or_else(|| self.user.display_name.clone()),
            own,
        )
    }
}

/// Adds a member to a space, or reactivates an earlier membership.
pub async fn add_member(
    db: &Db,
    space: SpaceId,
    new_member: NewMember,
    now: Timestamp,
) -> Result<Model, AddMemberError> {
    db.write(move |tx| {
        Box::pin(async move { insert_or_reactivate(tx, space, new_member, now).await })
    })
    .await
}

/// Does the same as [`add_member`] inside of a transaction.
///
/// # Errors
/// Returns `SpaceNotFound` if the space does not exist, `AlreadyMember` if the membership is
/// active, `NameTaken` if a user's name can be confused with that of another active member.
pub async fn insert_or_reactivate(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    new_member: NewMember,
    now: Timestamp,
) -> Result<Model, AddMemberError> {
    space::lock(tx, space)
        .await?
        .ok_or(AddMemberError::SpaceNotFound)?;
    let is_same_member = match &new_member {
        NewMember::User(person) => Column::UserId.eq(person.user.id),
        NewMember::Character(card) => Column::CharacterId.eq(card.id),
    };
    let earlier = Entity::find()
        .filter(Column::SpaceId.eq(space))
        .filter(is_same_member)
        .one(tx)
        .await?;
    if earlier
        .as_ref()
        .is_some_and(|it| it.status == MembershipStatus::Active)
    {
        return Err(AddMemberError::AlreadyMember);
    }
    if let NewMember::User(person) = &new_member {
        let (name, _) = person.display_names(earlier.as_ref());
        if has_confusable_name(tx, &[space], Some(person.user.id), &name).await? {
            return Err(AddMemberError::NameTaken);
        }
    }
    match earlier {
        Some(membership) => Ok(reactivate(tx, membership, &new_member).await?),
        None => {
            let position = membership::next_position(tx, space).await?;
            let row = match new_member {
                NewMember::User(person) => {
                    let (name, own) = person.display_names(None);
                    let (id, role) = (person.user.id, person.role);
                    ActiveModel {
                        own_display_name: Set(own),
                        ..new_human_row(space, id, role, name, position, now)
                    }
                }
                NewMember::Character(card) => new_character_row(space, card, position, now),
            };
            Ok(row.insert(tx).await?)
        }
    }
}

async fn reactivate(
    tx: &impl ConnectionTrait,
    membership: Model,
    new_member: &NewMember,
) -> Result<Model, DbErr> {
    let mut row = membership.clone().into_active_model();
    row.status = Set(MembershipStatus::Active);
    match new_member {
        // `participation` is not reset: an observer cannot escape it by leaving and coming back.
        NewMember::User(person) => {
            let (name, own) = person.display_names(Some(&membership));
            row.role = Set(person.role);
            row.cached_display_name = Set(name);
            row.own_display_name = Set(own);
        }
        NewMember::Character(card) => {
            row.participation = Set(Participation::Active);
            row.cached_display_name = Set(card.name.clone());
            row.avatar_hash = Set(card.avatar_hash.clone());
        }
    }
    row.update(tx).await
}

/// Returns the initial membership of a user.
pub fn new_human_row(
    space: SpaceId,
    user: UserId,
    role: MembershipRole,
    name: String,
    position: i64,
    now: Timestamp,
) -> ActiveModel {
    ActiveModel {
        user_id: Set(Some(user)),
        role: Set(role),
        ..new_row(space, MembershipKind::Human, name, position, now)
    }
}

fn new_character_row(
    space: SpaceId,
    card: character::Model,
    position: i64,
    now: Timestamp,
) -> ActiveModel {
    ActiveModel {
        character_id: Set(Some(card.id)),
        avatar_hash: Set(card.avatar_hash),
        ..new_row(space, MembershipKind::Character, card.name, position, now)
    }
}

/// Returns a removed membership for an author without account or card: history keeps the name.
pub fn removed_member(
    space: SpaceId,
    kind: MembershipKind,
    name: String,
    position: i64,
    now: Timestamp,
) -> ActiveModel {
    ActiveModel {
        status: Set(MembershipStatus::Removed),
        ..new_row(space, kind, name, position, now)
    }
}

fn new_row(
    space: SpaceId,
    kind: MembershipKind,
    name: String,
    position: i64,
    now: Timestamp,
) -> ActiveModel {
    ActiveModel {
        id: NotSet,
        space_id: Set(space),
        kind: Set(kind),
        user_id: Set(None),
        character_id: Set(None),
        role: Set(MembershipRole::Member),
        position: Set(position),
        status: Set(MembershipStatus::Active),
        participation: Set(Participation::Active),
        is_away: Set(false),
        cached_display_name: Set(name),
        own_display_name: Set(None),
        avatar_hash: Set(None),
        aliases: Set(serde_json::json!([])),
        active_persona_id: Set(None),
        translate: Set(membership::TranslationChoice::OnDemand),
        persona: Set(None),
        talkativeness: Set(None),
        copilot_mode: Set(CopilotMode::None),
        copilot_remaining_steps: Set(None),
        copilot_conversation_id: Set(None),
        llm_provider_id: Set(None),
        preset_id: Set(None),
        settings: Set(serde_json::json!({})),
        settings_version: Set(0),
        created_at: Set(now),
    }
}

/// Why a member was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveMemberError {
    #[error("The owner cannot leave. Transfer the space first.")]
    IsOwner,
    #[error("the membership is already removed or does not exist")]
    NotFound,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Removes a member. The membership of a guest who never wrote is deleted.
pub async fn remove_member(
    db: &Db,
    id: MembershipId,
    now: Timestamp,
) -> Result<Model, RemoveMemberError> {
    db.write(move |tx| {
        Box::pin(async move {
            let membership = Entity::find_by_id(id).one(tx).await?;
            let membership = membership.ok_or(RemoveMemberError::NotFound)?;
            let space = membership.space_id;
            needs_step::mark_for_member(tx, &membership).await?;
            // Checked again under the lock: the space may have been transferred to them just now.
            space::lock(tx, space)
                .await?
                .ok_or(RemoveMemberError::NotFound)?;
            let membership = Entity::find_by_id(id).one(tx).await?;
            let membership = membership.filter(|it| it.status == MembershipStatus::Active);
            let membership = membership.ok_or(RemoveMemberError::NotFound)?;
            match membership.role {
                MembershipRole::Owner => Err(RemoveMemberError::IsOwner),
                _ => {
                    let left = mark_removed(membership).update(tx).await?;
                    guest_cleanup::delete_if_unreferenced(tx, &left, now).await?;
                    Ok(left)
                }
            }
        })
    })
    .await
}

fn mark_removed(membership: Model) -> ActiveModel {
    let mut row = membership.into_active_model();
    row.status = Set(MembershipStatus::Removed);
    row.copilot_mode = Set(CopilotMode::None);
    row.copilot_remaining_steps = Set(None);
    row.copilot_conversation_id = Set(None);
    row
}

/// Returns all active memberships of a user.
pub async fn list_active_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::Status.eq(MembershipStatus::Active))
        .order_by_asc(Column::SpaceId)
        .all(db)
        .await
}

/// Returns whether the name can be confused with that of another active member in one of these
/// spaces.
pub async fn has_confusable_name(
    tx: &impl ConnectionTrait,
    spaces: &[SpaceId],
    excluded_user: Option<UserId>,
    name: &str,
) -> Result<bool, DbErr> {
    let memberships = Entity::find()
        .filter(Column::SpaceId.is_in(spaces.iter().copied()))
        .filter(membership::is_active())
        .all(tx)
        .await?;
    let skeleton = NameSkeleton::from_name(name);
    let mut others = memberships
        .iter()
        .filter(|it| excluded_user.is_none() || it.user_id != excluded_user);
    Ok(others
        .any(|it| NameSkeleton::from_name(&it.cached_display_name).is_confusable_with(&skeleton)))
}

/// Writes an account's new name to the user's active memberships and returns those. Memberships
/// with a name for the space keep it, and so do removed ones. Returns `None` if in one of the
/// spaces the name can be confused with that of another active member.
pub async fn rename_user(
    tx: &impl ConnectionTrait,
    user: UserId,
    name: &str,
) -> Result<Option<Vec<Model>>, DbErr> {
    let mut memberships = list_active_for_user(tx, user).await?;
    memberships.retain(|it| it.own_display_name.is_none());
    let spaces: Vec<SpaceId> = memberships.iter().map(|it| it.space_id).collect();
    space::lock_all(tx, &spaces).await?;
    if has_confusable_name(tx, &spaces, Some(user), name).await? {
        return Ok(None);
    }
    let without_own_name = Column::UserId
        .eq(user)
        .and(Column::OwnDisplayName.is_null());
    let name = (Column::CachedDisplayName, Expr::value(name));
    update_active(tx, without_own_name, vec![name])
        .await
        .map(Some)
}

/// Writes a character's name and avatar to its active memberships, and returns those.
pub async fn update_character_display(
    db: &Db,
    card: &character::Model,
) -> Result<Vec<Model>, DbErr> {
    let is_of_character = Column::CharacterId.eq(card.id);
    let columns = vec![
        (Column::CachedDisplayName, Expr::value(card.name.as_str())),
        (Column::AvatarHash, Expr::value(card.avatar_hash.clone())),
    ];
    db.write(move |tx| {
        Box::pin(async move {
            let memberships = Entity::find().filter(is_of_character.clone());
            let is_active = Column::Status.eq(MembershipStatus::Active);
            let memberships = memberships.filter(is_active).all(tx).await?;
            let spaces: Vec<SpaceId> = memberships.iter().map(|it| it.space_id).collect();
            // First, as in every change of a roster: triggers write to the spaces of the members.
            space::lock_all(tx, &spaces).await?;
            update_active(tx, is_of_character, columns).await
        })
    })
    .await
}

async fn update_active(
    tx: &impl ConnectionTrait,
    condition: SimpleExpr,
    columns: Vec<(Column, SimpleExpr)>,
) -> Result<Vec<Model>, DbErr> {
    let memberships = condition.and(Column::Status.eq(MembershipStatus::Active));
    // Locked in a fixed order: transactions that lock many rows in different orders deadlock.
    let in_order = Entity::find().filter(memberships.clone());
    let in_order = in_order.order_by_asc(Column::Id).lock(LockType::Update);
    in_order.all(tx).await?;
    let mut update = Entity::update_many().filter(memberships.clone());
    for (column, value) in columns {
        update = update.col_expr(column, value);
    }
    update.exec(tx).await?;
    Entity::find().filter(memberships).all(tx).await
}
