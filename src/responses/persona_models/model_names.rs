//! Parses, finds and lists persona models (characters and spaces that clients request as models),
//! and checks which user may use them.

use base::clock::Timestamp;
use base::ids::{CharacterId, SpaceId, UserId};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait,
};

use crate::accounts::user;
use crate::characters::character;
use crate::conversations::token_usage;
use crate::responses::error::ResponseEngineError;
use crate::spaces::permissions::{Access, Action};
use crate::spaces::{lifecycle, membership, shared_spaces, space};

/// The prefix before the id of a character.
const CHARACTER_PREFIX: &str = "character:";
/// The prefix before the id of a space.
const SPACE_PREFIX: &str = "space:";

/// The character or space that a model name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelRef {
    Character(CharacterId),
    Space(SpaceId),
}

/// A character or space that answers as a model.
#[derive(Clone, Debug)]
pub enum PersonaModel {
    /// A single character, which talks to a user of this name.
    Character {
        row: Box<character::Model>,
        user: String,
    },
    /// The characters of a space, requested by one of its members.
    Space {
        space: Box<space::Model>,
        /// The active memberships, in roster order.
        memberships: Vec<membership::Model>,
        membership: Box<membership::Model>,
    },
}

/// A persona model as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonaListing {
    /// The name that clients request.
    pub id: String,
    pub kind: &'static str,
    pub name: String,
    pub owner: Option<UserId>,
    pub created_at: Timestamp,
}

/// Parses the name of a persona model. Returns `None` for any other model name.
pub fn parse(model: &str) -> Option<ModelRef> {
    let number = |prefix: &str| {
        let digits = model.strip_prefix(prefix)?;
        let is_number = digits.bytes().all(|it| it.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number)
    };
    let character = number(CHARACTER_PREFIX).map(CharacterId);
    let space = || number(SPACE_PREFIX).map(SpaceId);
    character
        .map(ModelRef::Character)
        .or_else(|| space().map(ModelRef::Space))
}

/// Returns the model name of a character, which is also its id as a speaker.
pub fn format(character: CharacterId) -> String {
    format!("{CHARACTER_PREFIX}{character}")
}

/// Finds a persona model that this user may use.
///
/// # Errors
/// Returns `ModelNotFound` when the user cannot see it, `SpaceArchived` when the space is archived,
/// and `TokenLimitReached` when it has used up its tokens.
pub async fn find(
    db: &impl ConnectionTrait,
    user: UserId,
    model_ref: ModelRef,
) -> Result<PersonaModel, ResponseEngineError> {
    let requester = user::find(db, user).await?;
    let found = match (requester, model_ref) {
        (None, _) => None,
        (Some(asks), ModelRef::Character(id)) => find_character(db, &asks, id).await?,
        (Some(asks), ModelRef::Space(id)) => find_space(db, &asks, id).await?,
    };
    let found = found.ok_or_else(|| {
        ResponseEngineError::ModelNotFound(match model_ref {
            ModelRef::Character(id) => format(id),
            ModelRef::Space(id) => format!("{SPACE_PREFIX}{id}"),
        })
    })?;
    if let PersonaModel::Space { space, .. } = &found {
        require_open(db, space).await?;
    }
    Ok(found)
}

/// Checks that a space can answer.
async fn require_open(
    db: &impl ConnectionTrait,
    space: &space::Model,
) -> Result<(), ResponseEngineError> {
    if space.status == space::SpaceStatus::Archived {
        return Err(ResponseEngineError::SpaceArchived);
    }
    if token_usage::has_reached_limit(db, space, 0).await? {
        return Err(ResponseEngineError::TokenLimitReached);
    }
    Ok(())
}

async fn find_character(
    db: &impl ConnectionTrait,
    requester: &user::Model,
    id: CharacterId,
) -> Result<Option<PersonaModel>, DbErr> {
    let Some(row) = character::find_active(db, id).await? else {
        return Ok(None);
    };
    let is_owner = row.owner_id == Some(requester.id);
    if !is_owner && !shared_spaces::is_shared_with_character(db, requester.id, id).await? {
        return Ok(None);
    }
    Ok(Some(PersonaModel::Character {
        row: Box::new(row),
        user: requester.display_name.clone(),
    }))
}

async fn find_space(
    db: &impl ConnectionTrait,
    requester: &user::Model,
    id: SpaceId,
) -> Result<Option<PersonaModel>, DbErr> {
    let Some(space) = space::Entity::find_by_id(id).one(db).await? else {
        return Ok(None);
    };
    let memberships = membership::list_active(db, id).await?;
    let membership = memberships
        .iter()
        .find(|it| it.user_id == Some(requester.id));
    let membership = membership.filter(|it| can_use(it, requester)).cloned();
    Ok(membership.map(|membership| PersonaModel::Space {
        space: Box::new(space),
        membership: Box::new(membership),
        memberships,
    }))
}

/// Returns whether the member may both post messages and trigger replies.
fn can_use(membership: &membership::Model, requester: &user::Model) -> bool {
    let rights = Access::for_member(Some(membership), requester.role == user::UserRole::Admin);
    rights.is_some_and(|it| it.can(Action::Post) && it.can(Action::Generate))
}

/// Lists the persona models of a user in order of creation: their own characters, characters of
/// their spaces, and their active spaces.
///
/// # Errors
/// Returns the error of the database.
pub async fn list(db: &impl ConnectionTrait, user: UserId) -> Result<Vec<PersonaListing>, DbErr> {
    let Some(requester) = user::find(db, user).await? else {
        return Ok(Vec::new());
    };
    let mut all = list_characters(db, user).await?;
    let spaces = lifecycle::select_for_user(user)
        .filter(space::Column::Status.eq(space::SpaceStatus::Active))
        .order_by_asc(space::Column::Id)
        .all(db)
        .await?;
    let memberships = membership::Entity::find()
        .filter(membership::Column::UserId.eq(user))
        .filter(membership::Column::Status.eq(membership::MembershipStatus::Active))
        .all(db)
        .await?;
    let may_ask = |it: &space::Model| {
        let membership = memberships
            .iter()
            .find(|membership| membership.space_id == it.id);
        membership.is_some_and(|membership| can_use(membership, &requester))
    };
    all.extend(spaces.into_iter().filter(may_ask).map(|it| PersonaListing {
        id: format!("{SPACE_PREFIX}{}", it.id),
        kind: "space",
        name: it.name,
        owner: it.owner_id,
        created_at: it.created_at,
    }));
    Ok(all)
}

type PersonaRow = (CharacterId, String, Option<UserId>, Timestamp);

async fn list_characters(
    db: &impl ConnectionTrait,
    user: UserId,
) -> Result<Vec<PersonaListing>, DbErr> {
    let spaces = lifecycle::select_for_user(user)
        .select_only()
        .column(space::Column::Id);
    let shared = membership::Entity::find()
        .select_only()
        .column(membership::Column::CharacterId)
        .filter(membership::Column::CharacterId.is_not_null())
        .filter(membership::Column::Status.eq(membership::MembershipStatus::Active))
        .filter(membership::Column::SpaceId.in_subquery(spaces.into_query()));
    let own_or_met = Condition::any()
        .add(character::Column::OwnerId.eq(user))
        .add(character::Column::Id.in_subquery(shared.into_query()));
    let rows: Vec<PersonaRow> = character::Entity::find()
        .select_only()
        // The cards are left out because they may be large.
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
        .map(|(id, name, owner, created_at)| PersonaListing {
            id: format(id),
            kind: "character",
            name,
            owner,
            created_at,
        });
    Ok(listed.collect())
}

#[cfg(test)]
mod tests {
    use base::ids::{CharacterId, SpaceId};

    use super::{ModelRef, parse};

    #[test]
    fn only_a_prefix_and_a_number_name_a_persona_model() {
        assert_eq!(
            parse("character:12"),
            Some(ModelRef::Character(CharacterId(12)))
        );
        assert_eq!(parse("space:3"), Some(ModelRef::Space(SpaceId(3))));
        for other in [
            "character:",
            "character:7b",
            "space:+3",
            "space:-3",
            "space",
            "gpt:4",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
