//! Table `presets`: the presets in users' libraries, each with its prompt order, texts and sampling
//! settings.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{PresetId, UserId};
use sea_orm::ActiveValue::{NotSet, Set, Unchanged};
use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use serde::Serialize;
use tavern::regex_scripts::script_view::RegexScriptView;
use tavern::regex_scripts::{script_list, script_view};
use utoipa::ToSchema;

use crate::db::connect::Db;
use crate::db::string_enum::string_enum;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "presets")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: PresetId,
    pub owner_id: Option<UserId>,
    pub name: String,
    /// Only the keys that were set; see [`PartialPreset`](tavern::presets::partial_preset::PartialPreset).
    #[sea_orm(column_type = "JsonBinary")]
    pub document: Json,
    /// The fields of the imported file that we do not use, exported again with the preset.
    #[sea_orm(column_type = "JsonBinary")]
    pub origin: Option<Json>,
    /// Whether its owner allows its regex scripts.
    pub regex_allowed: bool,
    pub status: PresetStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// A deleted preset is kept for the spaces and memberships that use it.
    #[schema(as = PresetStatus)]
    PresetStatus { Active, Deleted }
}

/// A preset.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Preset)]
pub struct PresetView {
    pub id: PresetId,
    pub name: String,
    pub owner_id: Option<UserId>,
    pub status: PresetStatus,
    /// Only the keys that were set, as in `settings.preset`.
    #[schema(value_type = Object)]
    pub document: Json,
    /// Whether its owner allows its regex scripts.
    pub regex_allowed: bool,
    /// The regex scripts of the imported file.
    pub regex_scripts: Vec<RegexScriptView>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A preset to be created.
#[derive(Clone, Debug)]
pub struct NewPreset {
    pub name: String,
    pub document: Json,
    pub origin: Option<Json>,
}

impl Model {
    /// Returns the document for the API.
    pub fn view(&self) -> PresetView {
        PresetView {
            id: self.id,
            name: self.name.clone(),
            owner_id: self.owner_id,
            status: self.status,
            document: self.document.clone(),
            regex_allowed: self.regex_allowed,
            regex_scripts: script_view::views(script_list::of_preset(self.origin.as_ref())),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// Creates a preset in its owner's library.
pub async fn create(
    db: &Db,
    owner: UserId,
    new: NewPreset,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: NotSet,
        owner_id: Set(Some(owner)),
        name: Set(new.name),
        document: Set(new.document),
        origin: Set(new.origin),
        regex_allowed: NotSet,
        status: Set(PresetStatus::Active),
        created_at: Set(now),
        updated_at: Set(now),
    };
    db.write(move |tx| Box::pin(async move { row.insert(tx).await }))
        .await
}

/// Changes of a preset; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct PresetChanges {
    pub name: Option<String>,
    pub document: Option<Json>,
    pub regex_allowed: Option<bool>,
}

/// Updates a preset.
pub async fn update(
    db: &Db,
    id: PresetId,
    changes: PresetChanges,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        name: changes.name.map_or(NotSet, Set),
        document: changes.document.map_or(NotSet, Set),
        regex_allowed: changes.regex_allowed.map_or(NotSet, Set),
        updated_at: Set(now),
        ..Default::default()
    };
    db.write(move |tx| Box::pin(async move { row.update(tx).await }))
        .await
}

/// Marks a preset as deleted; spaces and memberships that use it keep it.
pub async fn delete(db: &Db, id: PresetId) -> Result<(), DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        status: Set(PresetStatus::Deleted),
        ..Default::default()
    };
    db.write(move |tx| Box::pin(async move { row.update(tx).await.map(|_| ()) }))
        .await
}

/// Returns a preset, deleted or not. The caller checks who may see it.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find(db: &impl ConnectionTrait, id: PresetId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns the documents of these presets, deleted ones included. Runs no query if `ids` is empty.
pub async fn load_documents(
    db: &impl ConnectionTrait,
    ids: &[PresetId],
) -> Result<HashMap<PresetId, Json>, DbErr> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found: Vec<(PresetId, Json)> = Entity::find()
        .select_only()
        .columns([Column::Id, Column::Document])
        .filter(Column::Id.is_in(ids.iter().copied()))
        .into_tuple()
        .all(db)
        .await?;
    Ok(found.into_iter().collect())
}
