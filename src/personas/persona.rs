//! Table `personas`: the roles that a user plays. A deleted persona keeps its row for the messages that
//! were posted under it.

use base::clock::Timestamp;
use base::ids::{PersonaId, UserId};
use base::prompt_role::PromptRole;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;
use sea_orm::{Condition, QueryOrder, QuerySelect};
use serde::Serialize;
use tavern::personas::persona_placement::{PersonaPlacement, PersonaPosition};
use utoipa::ToSchema;

use crate::db::reading::page::{PageOf, PageQuery};

/// How many personas a user may have.
pub const MAX_PERSONAS: u64 = 200;
/// The maximum length of a description, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;
/// The maximum length of a name and of a title, in characters.
pub const MAX_NAME_CHARS: usize = 100;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "personas")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: PersonaId,
    pub user_id: UserId,
    pub name: String,
    /// The name in one case; see [`name_key`](crate::personas::persona_names::name_key).
    pub name_key: String,
    pub description: String,
    /// The hash of its present picture.
    pub avatar_hash: Option<String>,
    /// Whether the user posts under it where no other persona is chosen.
    pub is_default: bool,
    pub created_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
    /// For the list of its user; never sent to a model. May be empty.
    pub title: String,
    /// Where the description is in a prompt.
    pub position: PersonaPosition,
    /// The number of messages after a description that is among them.
    pub depth: i64,
    /// The role of a description that is among the messages.
    pub role: PromptRole,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A role that a user plays.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Persona)]
pub struct PersonaView {
    pub id: PersonaId,
    pub name: String,
    /// For the user's own list; never sent to a model.
    pub title: String,
    pub description: String,
    /// Where the description is in a prompt.
    pub position: PersonaPosition,
    /// The number of messages after the description, with the position `at_depth`.
    pub depth: i64,
    /// The role of the description, with the position `at_depth`.
    pub role: PromptRole,
    pub avatar_url: Option<String>,
    /// Whether the user posts under it where no other persona is chosen.
    pub is_default: bool,
    pub created_at: Timestamp,
}

impl Model {
    /// Returns the document for its user.
    pub fn view(&self) -> PersonaView {
        PersonaView {
            id: self.id,
            name: self.name.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            position: self.position,
            depth: self.depth,
            role: self.role,
            avatar_url: avatar_url(self.id, self.avatar_hash.as_deref()),
            is_default: self.is_default,
            created_at: self.created_at,
        }
    }

    /// Returns where the description is in a prompt.
    pub fn placement(&self) -> PersonaPlacement {
        PersonaPlacement {
            position: self.position,
            depth: self.depth,
            role: self.role,
        }
    }
}

/// Returns the URL of a picture of a persona, which never changes.
pub fn avatar_url(id: PersonaId, hash: Option<&str>) -> Option<String> {
    hash.map(|it| format!("/api/personas/{id}/avatar?v={}", short_hash(it)))
}

/// Returns the start of a hash, long enough to distinguish the pictures of a persona.
pub fn short_hash(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

/// Returns a page of a user's personas.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let bytes = Expr::cust("CAST(octet_length(description) AS bigint)");
    page.load_large(select_for_user(user), Column::Id, bytes, db)
        .await
}

/// Returns all personas of a user, the oldest first. There are at most [`MAX_PERSONAS`].
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_all(db: &impl ConnectionTrait, user: UserId) -> Result<Vec<Model>, DbErr> {
    let own = select_for_user(user).order_by_asc(Column::Id);
    own.all(db).await
}

/// Returns a persona of a user, unless it is deleted.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    id: PersonaId,
) -> Result<Option<Model>, DbErr> {
    let own = select_for_user(user).filter(Column::Id.eq(id));
    own.one(db).await
}

/// Returns `active` if it is a persona of the user, else their default persona, if any.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_active_or_default(
    db: &impl ConnectionTrait,
    user: UserId,
    active: Option<PersonaId>,
) -> Result<Option<Model>, DbErr> {
    let mut usable = Condition::any().add(Column::IsDefault.eq(true));
    if let Some(id) = active {
        usable = usable.add(Column::Id.eq(id));
    }
    let found = select_for_user(user).filter(usable).all(db).await?;
    let chosen = found.iter().position(|it| Some(it.id) == active);
    Ok(found.into_iter().nth(chosen.unwrap_or(0)))
}

/// Returns the ids and names of a user's personas.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_names(
    db: &impl ConnectionTrait,
    user: UserId,
) -> Result<Vec<(PersonaId, String)>, DbErr> {
    select_for_user(user)
        .select_only()
        .columns([Column::Id, Column::Name])
        .into_tuple()
        .all(db)
        .await
}

/// Returns the descriptions of these personas with their positions, without deleted ones and blank ones.
/// Runs no query if `ids` is empty.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_descriptions(
    db: &impl ConnectionTrait,
    ids: &[PersonaId],
) -> Result<Vec<(PersonaId, String, PersonaPlacement)>, DbErr> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let found: Vec<(PersonaId, String, PersonaPosition, i64, PromptRole)> = Entity::find()
        .filter(Column::Id.is_in(ids.iter().copied()))
        .filter(Column::DeletedAt.is_null())
        .filter(Column::Description.ne(""))
        .select_only()
        .columns([
            Column::Id,
            Column::Description,
            Column::Position,
            Column::Depth,
            Column::Role,
        ])
        .into_tuple()
        .all(db)
        .await?;
    let placed = found.into_iter().map(|(id, text, position, depth, role)| {
        let placement = PersonaPlacement {
            position,
            depth,
            role,
        };
        (id, text, placement)
    });
    Ok(placed.collect())
}

/// Selects the personas of a user that are not deleted.
pub(super) fn select_for_user(user: UserId) -> Select<Entity> {
    Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::DeletedAt.is_null())
}
