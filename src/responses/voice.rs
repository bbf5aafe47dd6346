//! Characters and spaces that are asked for as models: by which names, and by whom.

use crate::accounts::user;
use crate::characters::character;
use crate::clock::Timestamp;
use crate::ids::CharacterId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::responses::refusal::Refusal;
use crate::spaces::lifecycle;
use crate::spaces::membership;
use crate::spaces::permissions::Access;
use crate::spaces::permissions::Action;
use crate::spaces::shared_spaces;
use crate::spaces::space;
use sea_orm::ColumnTrait;
use sea_orm::Condition;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use sea_orm::QuerySelect;
use sea_orm::QueryTrait;

/// What stands before the number of a character.
const CHARACTER: &str = "character:";
/// What stands before the number of a space.
const SPACE: &str = "space:";

/// Whose name a model's name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Character(CharacterId),
    Space(SpaceId),
}

/// Who answers in the place of a model.
#[derive(Clone, Debug)]
pub enum Voice {
    /// A character by itself, for somebody of this name.
    Character {
        row: Box<character::Model>,
        user: String,
    },
    /// The characters of a space, for somebody with a seat in it.
    Space {
        space: Box<space::Model>,
        /// The active ones, in the order of the roster.
        seats: Vec<membership::Model>,
        seat: Box<membership::Model>,
    },
}

/// A character or a space, as it is listed among the models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// By which it is asked for.
    pub id: String,
    pub kind: &'static str,
    pub name: String,
    pub owner: Option<UserId>,
    pub created_at: Timestamp,
}

/// Reads the name of a model as that of a character or a space; `None`: it is neither's.
pub fn named(model: &str) -> Option<Named> {
    let number = |prefix: &str| {
        let digits = model.strip_prefix(prefix)?;
        let is_number = digits.bytes().all(|it| it.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number)
    };
    let character = number(CHARACTER).map(CharacterId);
    let space = || number(SPACE).map(SpaceId);
    character
        .map(Named::Character)
        .or_else(|| space().map(Named::Space))
}

/// The name of a character as a model, which is also its id as a speaker.
pub fn name_of(character: CharacterId) -> String {
    format!("{CHARACTER}{character}")
}

/// Whoever this is, if this user may ask them.
///
/// # Errors
/// They are not there for this user, or take no questions now.
pub async fn find(db: &impl ConnectionTrait, user: UserId, named: Named) -> Result<Voice, Refusal> {
    let asks = user::Entity::find_by_id(user).one(db).await?;
    let found = match (asks, named) {
        (None, _) => None,
        (Some(asks), Named::Character(id)) => character_for(db, &asks, id).await?,
        (Some(asks), Named::Space(id)) => space_for(db, &asks, id).await?,
    };
    let found = found.ok_or_else(|| {
        Refusal::ModelNotFound(match named {
            Named::Character(id) => name_of(id),
            Named::Space(id) => format!("{SPACE}{id}"),
        })
    })?;
    if let Voice::Space { space, .. } = &found {
        must_be_open(space)?;
    }
    Ok(found)
}

/// Whether a space takes questions.
fn must_be_open(space: &space::Model) -> Result<(), Refusal> {
    if space.status == space::SpaceStatus::Archived {
        return Err(Refusal::SpaceArchived);
    }
    match space.token_limit > 0 && space.tokens_used >= space.token_limit {
        true => Err(Refusal::TokenLimit),
        false => Ok(()),
    }
}

async fn character_for(
    db: &impl ConnectionTrait,
    asks: &user::Model,
    id: CharacterId,
) -> Result<Option<Voice>, DbErr> {
    let Some(row) = character::find_active(db, id).await? else {
        return Ok(None);
    };
    let is_theirs = row.owner_id == Some(asks.id);
    if !is_theirs && !shared_spaces::is_shared_with_character(db, asks.id, id).await? {
        return Ok(None);
    }
    Ok(Some(Voice::Character {
        row: Box::new(row),
        user: asks.display_name.clone(),
    }))
}

async fn space_for(
    db: &impl ConnectionTrait,
    asks: &user::Model,
    id: SpaceId,
) -> Result<Option<Voice>, DbErr> {
    let Some(space) = space::Entity::find_by_id(id).one(db).await? else {
        return Ok(None);
    };
    let seats = membership::list_active(db, id).await?;
    let seat = seats.iter().find(|it| it.user_id == Some(asks.id));
    let seat = seat.filter(|it| may_ask(it, asks)).cloned();
    Ok(seat.map(|seat| Voice::Space {
        space: Box::new(space),
        seat: Box::new(seat),
        seats,
    }))
}

/// Whoever has a seat in which they may both speak and let others speak.
fn may_ask(seat: &membership::Model, asks: &user::Model) -> bool {
    let standing = Access::for_member(Some(seat), asks.role == user::UserRole::Admin);
    standing.is_some_and(|it| it.can(Action::Post) && it.can(Action::Generate))
}

/// All characters and spaces that this user may ask: characters of their own and those with whom they
/// sit in a space, and spaces that are open, each in the order in which they were made.
///
/// # Errors
/// When the database fails.
pub async fn list(db: &impl ConnectionTrait, user: UserId) -> Result<Vec<Listed>, DbErr> {
    let Some(asks) = user::Entity::find_by_id(user).one(db).await? else {
        return Ok(Vec::new());
    };
    let mut all = characters(db, user).await?;
    let spaces = lifecycle::list_for_user(user)
        .filter(space::Column::Status.eq(space::SpaceStatus::Active))
        .order_by_asc(space::Column::Id)
        .all(db)
        .await?;
    let seats = membership::Entity::find()
        .filter(membership::Column::UserId.eq(user))
        .filter(membership::Column::Status.eq(membership::MembershipStatus::Active))
        .all(db)
        .await?;
    let may_ask = |it: &space::Model| {
        let seat = seats.iter().find(|seat| seat.space_id == it.id);
        seat.is_some_and(|seat| may_ask(seat, &asks))
    };
    all.extend(spaces.into_iter().filter(may_ask).map(|it| Listed {
        id: format!("{SPACE}{}", it.id),
        kind: "space",
        name: it.name,
        owner: it.owner_id,
        created_at: it.created_at,
    }));
    Ok(all)
}

type Row = (CharacterId, String, Option<UserId>, Timestamp);

async fn characters(db: &impl ConnectionTrait, user: UserId) -> Result<Vec<Listed>, DbErr> {
    let spaces = lifecycle::list_for_user(user)
        .select_only()
        .column(space::Column::Id);
    let met = membership::Entity::find()
        .select_only()
        .column(membership::Column::CharacterId)
        .filter(membership::Column::CharacterId.is_not_null())
        .filter(membership::Column::Status.eq(membership::MembershipStatus::Active))
        .filter(membership::Column::SpaceId.in_subquery(spaces.into_query()));
    let own_or_met = Condition::any()
        .add(character::Column::OwnerId.eq(user))
        .add(character::Column::Id.in_subquery(met.into_query()));
    let rows: Vec<Row> = character::Entity::find()
        .select_only()
        // Not the cards, which may be large.
        .columns([
            character::Column::Id,
            character::Column::Name,
            character::Column::OwnerId,
            character::Column::CreatedAt,
        ])
        .filter(character::Column::Status.eq(character::CharacterStatus::Active))
        .filter(own_or_met)
        .order_by_asc(character::Column::Id)
        .into_tuple()
        .all(db)
        .await?;
    let listed = rows
        .into_iter()
        .map(|(id, name, owner, created_at)| Listed {
            id: name_of(id),
            kind: "character",
            name,
            owner,
            created_at,
        });
    Ok(listed.collect())
}

#[cfg(test)]
mod tests {
    use super::Named;
    use super::named;
    use crate::ids::CharacterId;
    use crate::ids::SpaceId;

    #[test]
    fn a_prefix_and_a_number_are_somebodys_name_and_nothing_else_is() {
        assert_eq!(
            named("character:12"),
            Some(Named::Character(CharacterId(12)))
        );
        assert_eq!(named("space:3"), Some(Named::Space(SpaceId(3))));
        for other in [
            "character:",
            "character:7b",
            "space:+3",
            "space:-3",
            "space",
            "gpt:4",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
