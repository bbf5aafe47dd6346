//! Creates, changes and deletes personas, and sets their pictures, within the limits of their user:
//! the number of personas, and the storage quota.
//!
//! **Invariant:** each change holds the lock of the user's row, so that the limits hold for changes that
//! are made at the same time.

use base::clock::Timestamp;
use base::ids::{PersonaId, UserId};
use base::prompt_role::PromptRole;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    PaginatorTrait, QueryFilter,
};
use tavern::cards::avatar_image::AvatarImage;
use tavern::personas::persona_placement::{PersonaPlacement, PersonaPosition};

use crate::accounts::user;
use crate::characters::quota::{QuotaError, QuotaExceeded, StorageQuota};
use crate::characters::{asset, quota};
use crate::db::backend::is_unique_violation;
use crate::db::connect::Db;
use crate::personas::persona::{ActiveModel, Column, Entity, MAX_PERSONAS, Model};
use crate::personas::{persona, persona_names, persona_picture};

/// Why a persona was not stored.
#[derive(Debug, thiserror::Error)]
pub enum PersonaError {
    #[error("You have a persona with this name.")]
    NameTaken,
    #[error("You have {MAX_PERSONAS} personas; that is the limit.")]
    TooMany,
    #[error("The persona does not exist.")]
    NotFound,
    #[error(transparent)]
    QuotaExceeded(#[from] QuotaExceeded),
    #[error(transparent)]
    Db(DbErr),
}

impl From<DbErr> for PersonaError {
    fn from(error: DbErr) -> Self {
        match is_unique_violation(&error) {
            true => Self::NameTaken,
            false => Self::Db(error),
        }
    }
}

impl From<QuotaError> for PersonaError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(full) => Self::QuotaExceeded(full),
            QuotaError::Db(error) => Self::Db(error),
        }
    }
}

/// A persona to be created. The name is a valid display name.
#[derive(Clone, Debug)]
pub struct NewPersona {
    pub name: String,
    pub title: String,
    pub description: String,
    pub placement: PersonaPlacement,
    pub is_default: bool,
    pub picture: Option<AvatarImage>,
}

/// Changes of a persona; `None` leaves the value unchanged.
#[derive(Clone, Debug, Default)]
pub struct PersonaUpdate {
    pub name: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub position: Option<PersonaPosition>,
    pub depth: Option<i64>,
    pub role: Option<PromptRole>,
    pub is_default: Option<bool>,
}

/// Creates a persona.
///
/// # Errors
/// Returns `NameTaken`, `TooMany` or `QuotaExceeded`, and `Db` when the database fails.
pub async fn create(
    db: &Db,
    quota: StorageQuota,
    new: NewPersona,
    now: Timestamp,
) -> Result<Model, PersonaError> {
    db.write(move |tx| {
        Box::pin(async move {
            user::lock_row(tx, quota.owner).await?;
            let n_present = persona::select_for_user(quota.owner).count(tx).await?;
            if n_present >= MAX_PERSONAS {
                return Err(PersonaError::TooMany);
            }
            let made = insert(tx, quota.owner, new, now).await?;
            quota::require_quota(tx, quota, 0).await?;
            Ok(made)
        })
    })
    .await
}

/// The result of [`create_all`].
#[derive(Debug, Default)]
pub struct CreatedPersonas {
    pub n_created: usize,
    /// The names that the user has already.
    pub known: Vec<String>,
    /// The names that exceed the limit of the number of personas.
    pub surplus: Vec<String>,
}

/// Creates personas that were read from a file. Names that the user has already are left out, and so
/// are those that exceed the limit; an existing default persona stays the default.
///
/// # Errors
/// Returns `QuotaExceeded` when nothing was stored, and `Db` when the database fails.
pub async fn create_all(
    db: &Db,
    quota: StorageQuota,
    all: Vec<NewPersona>,
    now: Timestamp,
) -> Result<CreatedPersonas, PersonaError> {
    db.write(move |tx| {
        Box::pin(async move {
            user::lock_row(tx, quota.owner).await?;
            let present = persona::list_all(tx, quota.owner).await?;
            let mut room = usize::try_from(MAX_PERSONAS).unwrap_or(0);
            room = room.saturating_sub(present.len());
            let has_default = present.iter().any(|it| it.is_default);
            let mut keys: Vec<String> = present.into_iter().map(|it| it.name_key).collect();
            let mut report = CreatedPersonas::default();
            let mut fitting = Vec::new();
            for mut new in all {
                let key = persona_names::name_key(&new.name);
                if keys.contains(&key) {
                    report.known.push(new.name);
                } else if fitting.len() >= room {
                    report.surplus.push(new.name);
                } else {
                    new.is_default &= !has_default;
                    keys.push(key);
                    fitting.push(new);
                }
            }
            report.n_created = fitting.len();
            for new in fitting {
                insert(tx, quota.owner, new, now).await?;
            }
            quota::require_quota(tx, quota, 0).await?;
            Ok(report)
        })
    })
    .await
}

/// Changes a persona.
///
/// # Errors
/// Returns `NotFound`, `NameTaken` or `QuotaExceeded`, and `Db` when the database fails.
pub async fn update(
    db: &Db,
    quota: StorageQuota,
    id: PersonaId,
    change: PersonaUpdate,
) -> Result<Model, PersonaError> {
    db.write(move |tx| {
        Box::pin(async move {
            user::lock_row(tx, quota.owner).await?;
            let present = require(tx, quota.owner, id).await?;
            let grows = change
                .description
                .as_ref()
                .is_some_and(|it| it.len() > present.description.len());
            let mut row = present.into_active_model();
            if let Some(name) = change.name {
                row.name_key
                    .set_if_not_equals(persona_names::name_key(&name));
                row.name.set_if_not_equals(name);
            }
            if let Some(title) = change.title {
                row.title.set_if_not_equals(title);
            }
            if let Some(description) = change.description {
                row.description.set_if_not_equals(description);
            }
            if let Some(position) = change.position {
                row.position.set_if_not_equals(position);
            }
            if let Some(depth) = change.depth {
                row.depth.set_if_not_equals(depth);
            }
            if let Some(role) = change.role {
                row.role.set_if_not_equals(role);
            }
            if let Some(is_default) = change.is_default {
                if is_default {
                    clear_default(tx, quota.owner).await?;
                }
                row.is_default = Set(is_default);
            }
            let changed = match row.is_changed() {
                true => row.update(tx).await?,
                false => row.try_into()?,
            };
            if grows {
                quota::require_quota(tx, quota, 0).await?;
            }
            Ok(changed)
        })
    })
    .await
}

/// Marks a persona as deleted. Messages keep its name, and the pictures that they show.
///
/// # Errors
/// Returns `NotFound`, and `Db` when the database fails.
pub async fn mark_deleted(
    tx: &impl ConnectionTrait,
    owner: UserId,
    id: PersonaId,
    now: Timestamp,
) -> Result<(), PersonaError> {
    user::lock_row(tx, owner).await?;
    let mut row = require(tx, owner, id).await?.into_active_model();
    row.deleted_at = Set(Some(now));
    row.is_default = Set(false);
    row.title = Set(String::new());
    row.description = Set(String::new());
    row.avatar_hash = Set(None);
    row.update(tx).await?;
    persona_picture::delete_unused(tx, id).await?;
    Ok(())
}

/// Replaces the picture of a persona, or removes it. Messages that were posted before keep theirs.
///
/// # Errors
/// Returns `NotFound` or `QuotaExceeded`, and `Db` when the database fails.
pub async fn set_picture(
    db: &Db,
    quota: StorageQuota,
    id: PersonaId,
    picture: Option<AvatarImage>,
    now: Timestamp,
) -> Result<Model, PersonaError> {
    db.write(move |tx| {
        Box::pin(async move {
            user::lock_row(tx, quota.owner).await?;
            let mut row = require(tx, quota.owner, id).await?.into_active_model();
            let hash = match picture {
                Some(picture) => Some(add_picture(tx, id, picture, now).await?),
                None => None,
            };
            let grows = hash.is_some();
            row.avatar_hash = Set(hash);
            let changed = row.update(tx).await?;
            persona_picture::delete_unused(tx, id).await?;
            if grows {
                quota::require_quota(tx, quota, 0).await?;
            }
            Ok(changed)
        })
    })
    .await
}

/// Stores a picture in both sizes. Returns its hash.
async fn add_picture(
    tx: &impl ConnectionTrait,
    persona_id: PersonaId,
    picture: AvatarImage,
    now: Timestamp,
) -> Result<String, DbErr> {
    let hash = asset::sha256_hex(&picture.small);
    let large_id = asset::store(tx, picture.large, now).await?;
    let small_id = asset::store(tx, picture.small, now).await?;
    let row = persona_picture::Model {
        persona_id,
        hash: hash.clone(),
        small_id,
        large_id,
    };
    persona_picture::add(tx, row).await?;
    Ok(hash)
}

async fn require(
    tx: &impl ConnectionTrait,
    owner: UserId,
    id: PersonaId,
) -> Result<Model, PersonaError> {
    let found = persona::find_for_user(tx, owner, id).await?;
    found.ok_or(PersonaError::NotFound)
}

async fn insert(
    tx: &impl ConnectionTrait,
    owner: UserId,
    mut new: NewPersona,
    now: Timestamp,
) -> Result<Model, DbErr> {
    if new.is_default {
        clear_default(tx, owner).await?;
    }
    let picture = new.picture.take();
    let made = new_row(owner, new, now).insert(tx).await?;
    let Some(picture) = picture else {
        return Ok(made);
    };
    let hash = add_picture(tx, made.id, picture, now).await?;
    let mut row = made.into_active_model();
    row.avatar_hash = Set(Some(hash));
    row.update(tx).await
}

fn new_row(owner: UserId, new: NewPersona, now: Timestamp) -> ActiveModel {
    ActiveModel {
        id: NotSet,
        user_id: Set(owner),
        name_key: Set(persona_names::name_key(&new.name)),
        name: Set(new.name),
        description: Set(new.description),
        avatar_hash: Set(None),
        is_default: Set(new.is_default),
        created_at: Set(now),
        deleted_at: Set(None),
        title: Set(new.title),
        position: Set(new.placement.position),
        depth: Set(new.placement.depth),
        role: Set(new.placement.role),
    }
}

/// Makes the user's default persona, if there is one, an ordinary one.
async fn clear_default(tx: &impl ConnectionTrait, owner: UserId) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::IsDefault, Expr::value(false))
        .filter(Column::UserId.eq(owner))
        .filter(Column::IsDefault.eq(true))
        .exec(tx)
        .await
        .map(drop)
}
