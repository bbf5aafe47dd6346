//! Seats are taken, changed and left, each under the lock of its space.
//!
//! **Invariant:** a person or a character sits in a space once. Who comes back sits on the same
//! seat as before, so that history keeps one author.

use crate::accounts::confusable_names::NameSkeleton;
use crate::accounts::user;
use crate::characters::character;
use crate::clock::Timestamp;
use crate::db::connect::Db;
use crate::ids::MembershipId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::spaces::guests;
use crate::spaces::membership;
use crate::spaces::membership::ActiveModel;
use crate::spaces::membership::Column;
use crate::spaces::membership::CopilotMode;
use crate::spaces::membership::Entity;
use crate::spaces::membership::MembershipKind;
use crate::spaces::membership::MembershipRole;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Model;
use crate::spaces::membership::Participation;
use crate::spaces::needs_step;
use crate::spaces::tenancy;
use sea_orm::ActiveModelTrait;
use sea_orm::ActiveValue::NotSet;
use sea_orm::ActiveValue::Set;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::ExprTrait;
use sea_orm::IntoActiveModel;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use sea_orm::QuerySelect;
use sea_orm::sea_query::Expr;
use sea_orm::sea_query::LockType;
use sea_orm::sea_query::SimpleExpr;

/// Why a seat was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SeatError {
    #[error("They sit in this space already.")]
    AlreadyMember,
    #[error("the space is gone")]
    Gone,
    #[error("Another member of this space has a name that looks like this one. Choose another.")]
    NameTaken,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Who is to be seated.
#[derive(Clone, Debug)]
pub enum Newcomer {
    User(Person),
    Character(character::Model),
}

/// A person who is to be seated.
#[derive(Clone, Debug)]
pub struct Person {
    pub user: user::Model,
    pub role: MembershipRole,
    /// The name for this space; `None`: the one of an earlier membership, else the account's.
    pub display_name: Option<String>,
}

impl Person {
    /// The name that is shown in the space, and the part of it that was chosen for this space.
    fn names(&self, earlier: Option<&Model>) -> (String, Option<String>) {
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

/// Gives a seat in a space; who sat there before gets the old one back.
pub async fn seat(
    db: &Db,
    space: SpaceId,
    newcomer: Newcomer,
    now: Timestamp,
) -> Result<Model, SeatError> {
    db.write(move |tx| Box::pin(async move { take_seat(tx, space, newcomer, now).await }))
        .await
}

/// The same inside of a transaction.
///
/// # Errors
/// [`SeatError::NameTaken`] if a person's name looks like that of another active member.
pub async fn take_seat(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    newcomer: Newcomer,
    now: Timestamp,
) -> Result<Model, SeatError> {
    tenancy::locked(tx, space).await?.ok_or(SeatError::Gone)?;
    let theirs = match &newcomer {
        Newcomer::User(person) => Column::UserId.eq(person.user.id),
        Newcomer::Character(card) => Column::CharacterId.eq(card.id),
    };
    let earlier = Entity::find()
        .filter(Column::SpaceId.eq(space))
        .filter(theirs)
        .one(tx)
        .await?;
    if earlier
        .as_ref()
        .is_some_and(|it| it.status == MembershipStatus::Active)
    {
        return Err(SeatError::AlreadyMember);
    }
    if let Newcomer::User(person) = &newcomer {
        let (name, _) = person.names(earlier.as_ref());
        if is_mistaken_for_another(tx, &[space], Some(person.user.id), &name).await? {
            return Err(SeatError::NameTaken);
        }
    }
    match earlier {
        Some(seat) => Ok(revive(tx, seat, &newcomer).await?),
        None => {
            let position = membership::next_position(tx, space).await?;
            let row = match newcomer {
                Newcomer::User(person) => {
                    let (name, own) = person.names(None);
                    let (id, role) = (person.user.id, person.role);
                    ActiveModel {
                        own_display_name: Set(own),
                        ..blank_human(space, id, role, name, position, now)
                    }
                }
                Newcomer::Character(card) => blank_character(space, card, position, now),
            };
            Ok(row.insert(tx).await?)
        }
    }
}

async fn revive(
    tx: &impl ConnectionTrait,
    seat: Model,
    newcomer: &Newcomer,
) -> Result<Model, DbErr> {
    let mut row = seat.clone().into_active_model();
    row.status = Set(MembershipStatus::Active);
    match newcomer {
        // Who was made an observer stays one: to leave and come back is no way around it.
        Newcomer::User(person) => {
            let (name, own) = person.names(Some(&seat));
            row.role = Set(person.role);
            row.cached_display_name = Set(name);
            row.own_display_name = Set(own);
        }
        Newcomer::Character(card) => {
            row.participation = Set(Participation::Active);
            row.cached_display_name = Set(card.name.clone());
            row.avatar_hash = Set(card.avatar_hash.clone());
        }
    }
    row.update(tx).await
}

/// A person's seat as it is in the beginning.
pub fn blank_human(
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
        ..blank(space, MembershipKind::Human, name, position, now)
    }
}

fn blank_character(
    space: SpaceId,
    card: character::Model,
    position: i64,
    now: Timestamp,
) -> ActiveModel {
    ActiveModel {
        character_id: Set(Some(card.id)),
        avatar_hash: Set(card.avatar_hash),
        ..blank(space, MembershipKind::Character, card.name, position, now)
    }
}

/// A seat of somebody who is not here: history keeps the name, nobody speaks from it.
pub fn left(
    space: SpaceId,
    kind: MembershipKind,
    name: String,
    position: i64,
    now: Timestamp,
) -> ActiveModel {
    ActiveModel {
        status: Set(MembershipStatus::Removed),
        ..blank(space, kind, name, position, now)
    }
}

fn blank(
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
        cached_display_name: Set(name),
        own_display_name: Set(None),
        avatar_hash: Set(None),
        aliases: Set(serde_json::json!([])),
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

/// Why a seat was not left.
#[derive(Debug, thiserror::Error)]
pub enum LeaveError {
    #[error("The owner cannot leave: hand the space over first.")]
    Owner,
    #[error("it is left already, or gone")]
    Gone,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Empties a seat. A guest's is deleted if they never wrote.
pub async fn leave(db: &Db, id: MembershipId, now: Timestamp) -> Result<Model, LeaveError> {
    db.write(move |tx| {
        Box::pin(async move {
            let seat = Entity::find_by_id(id).one(tx).await?;
            let seat = seat.ok_or(LeaveError::Gone)?;
            let space = seat.space_id;
            if seat.may_be_scheduled() {
                needs_step::mark_all(tx, space).await?;
            }
            // Looked at again under the lock: the space may have been handed to them just now.
            tenancy::locked(tx, space).await?.ok_or(LeaveError::Gone)?;
            let seat = Entity::find_by_id(id).one(tx).await?;
            let seat = seat.filter(|it| it.status == MembershipStatus::Active);
            let seat = seat.ok_or(LeaveError::Gone)?;
            match seat.role {
                MembershipRole::Owner => Err(LeaveError::Owner),
                _ => {
                    let left = emptied(seat).update(tx).await?;
                    guests::delete_if_silent(tx, &left, now).await?;
                    Ok(left)
                }
            }
        })
    })
    .await
}

fn emptied(seat: Model) -> ActiveModel {
    let mut row = seat.into_active_model();
    row.status = Set(MembershipStatus::Removed);
    row.copilot_mode = Set(CopilotMode::None);
    row.copilot_remaining_steps = Set(None);
    row.copilot_conversation_id = Set(None);
    row
}

/// Every seat that a person has now.
pub async fn taken_by(db: &impl ConnectionTrait, user: UserId) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::Status.eq(MembershipStatus::Active))
        .order_by_asc(Column::SpaceId)
        .all(db)
        .await
}

/// Whether somebody else who sits in one of these spaces could be taken for a person of this name.
pub async fn is_mistaken_for_another(
    tx: &impl ConnectionTrait,
    spaces: &[SpaceId],
    who: Option<UserId>,
    name: &str,
) -> Result<bool, DbErr> {
    let seats = Entity::find()
        .filter(Column::SpaceId.is_in(spaces.iter().copied()))
        .filter(membership::is_active())
        .all(tx)
        .await?;
    let likeness = NameSkeleton::from_name(name);
    let mut others = seats.iter().filter(|it| who.is_none() || it.user_id != who);
    Ok(others
        .any(|it| NameSkeleton::from_name(&it.cached_display_name).is_confusable_with(&likeness)))
}

/// Writes an account's new name on the person's active memberships, and returns those. Memberships
/// with a name of their own keep it, and so do those that were left. `None`: in one of the spaces the
/// name looks like that of another active member.
pub async fn rename_person(
    tx: &impl ConnectionTrait,
    user: UserId,
    name: &str,
) -> Result<Option<Vec<Model>>, DbErr> {
    let mut seats = taken_by(tx, user).await?;
    seats.retain(|it| it.own_display_name.is_none());
    let spaces: Vec<SpaceId> = seats.iter().map(|it| it.space_id).collect();
    tenancy::lock_all(tx, &spaces).await?;
    if is_mistaken_for_another(tx, &spaces, Some(user), name).await? {
        return Ok(None);
    }
    let theirs = Column::UserId
        .eq(user)
        .and(Column::OwnDisplayName.is_null());
    let name = (Column::CachedDisplayName, Expr::value(name));
    write(tx, theirs, vec![name]).await.map(Some)
}

/// Writes a character's name and picture on the seats it has now, and tells which they are.
pub async fn show_character(db: &Db, card: &character::Model) -> Result<Vec<Model>, DbErr> {
    let its = Column::CharacterId.eq(card.id);
    let shown = vec![
        (Column::CachedDisplayName, Expr::value(card.name.as_str())),
        (Column::AvatarHash, Expr::value(card.avatar_hash.clone())),
    ];
    db.write(move |tx| Box::pin(async move { write(tx, its, shown).await }))
        .await
}

async fn write(
    tx: &impl ConnectionTrait,
    whose: SimpleExpr,
    columns: Vec<(Column, SimpleExpr)>,
) -> Result<Vec<Model>, DbErr> {
    let seats = whose.and(Column::Status.eq(MembershipStatus::Active));
    // In one order: two who lock many rows in different orders wait for each other.
    let in_order = Entity::find().filter(seats.clone());
    let in_order = in_order.order_by_asc(Column::Id).lock(LockType::Update);
    in_order.all(tx).await?;
    let mut update = Entity::update_many().filter(seats.clone());
    for (column, value) in columns {
        update = update.col_expr(column, value);
    }
    update.exec(tx).await?;
    Entity::find().filter(seats).all(tx).await
}
