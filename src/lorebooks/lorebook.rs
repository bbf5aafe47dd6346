//! Table `lorebooks`: the lorebooks in users' libraries, without their entries.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{LorebookId, UserId};
use sea_orm::ActiveValue::{NotSet, Set, Unchanged};
use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value};
use tavern::lorebook_files::file::ParsedLorebook;
use tavern::lorebook_files::lenient_json;
use utoipa::ToSchema;

use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::db::reading::row_slices;
use crate::lorebooks::lorebook_entry;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "lorebooks")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: LorebookId,
    pub owner_id: Option<UserId>,
    pub name: String,
    /// All fields except the name and the entries; unknown fields are preserved.
    #[sea_orm(column_type = "JsonBinary")]
    pub document: Json,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A lorebook.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Lorebook)]
pub struct LorebookView {
    pub id: LorebookId,
    pub name: String,
    pub owner_id: Option<UserId>,
    pub description: String,
    /// The scan depth of its entries in messages; null: the settings of the space apply.
    pub scan_depth: Option<i64>,
    /// The maximum number of tokens of its entries together.
    pub token_budget: Option<i64>,
    /// Whether its entries may activate each other; null: the settings of the space apply.
    pub recursive_scanning: Option<bool>,
    pub n_entries: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Model {
    /// Returns the document for its owner.
    pub fn view(&self, n_entries: u64) -> LorebookView {
        let field = |name: &str| self.document.get(name);
        LorebookView {
            id: self.id,
            name: self.name.clone(),
            owner_id: self.owner_id,
            description: lenient_json::text(field("description")),
            scan_depth: lenient_json::int(field("scan_depth")),
            token_budget: lenient_json::int(field("token_budget")),
            recursive_scanning: lenient_json::boolean(field("recursive_scanning")),
            n_entries,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    /// Returns all fields except the name and the entries.
    pub fn fields(&self) -> Map<String, Value> {
        self.document.as_object().cloned().unwrap_or_default()
    }
}

/// Adds a lorebook with its entries to a library.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn create(
    db: &Db,
    owner: UserId,
    parsed: ParsedLorebook,
    now: Timestamp,
) -> Result<Model, DbErr> {
    db.write(move |tx| Box::pin(async move { insert(tx, owner, parsed, now).await }))
        .await
}

/// Adds a lorebook with its entries to a library, in a transaction of the caller.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn insert(
    tx: &impl ConnectionTrait,
    owner: UserId,
    parsed: ParsedLorebook,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: NotSet,
        owner_id: Set(Some(owner)),
        name: Set(parsed.name),
        document: Set(Value::Object(parsed.document)),
        created_at: Set(now),
        updated_at: Set(now),
    };
    let made = row.insert(tx).await?;
    lorebook_entry::append(tx, made.id, 0, parsed.entries).await?;
    Ok(made)
}

/// Changes the name and fields of a lorebook, not its entries.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn update(
    db: &Db,
    id: LorebookId,
    name: Option<String>,
    document: Option<Value>,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        name: name.map_or(NotSet, Set),
        document: document.map_or(NotSet, Set),
        updated_at: Set(now),
        ..Default::default()
    };
    db.write(move |tx| Box::pin(async move { row.update(tx).await }))
        .await
}

/// Deletes a lorebook with its links.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete(db: &Db, id: LorebookId) -> Result<(), DbErr> {
    db.write(move |tx| Box::pin(async move { Entity::delete_by_id(id).exec(tx).await.map(|_| ()) }))
        .await
}

/// Returns a page of the lorebooks in a user's library, limited by the bytes of their fields.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_for_owner(
    db: &impl ConnectionTrait,
    owner: UserId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let bytes = row_slices::json_bytes(Column::Document);
    page.load_large(select_for_owner(owner), Column::Id, bytes, db)
        .await
}

/// Selects the lorebooks in a user's library.
pub fn select_for_owner(owner: UserId) -> Select<Entity> {
    Entity::find().filter(Column::OwnerId.eq(owner))
}

/// Returns a lorebook. The caller checks who may see it.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find(db: &impl ConnectionTrait, id: LorebookId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns those of these lorebooks that exist. The caller checks who may see them.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_many(db: &impl ConnectionTrait, ids: &[LorebookId]) -> Result<Vec<Model>, DbErr> {
    let books = Entity::find().filter(Column::Id.is_in(ids.iter().copied()));
    books.all(db).await
}

/// Returns the number of entries by lorebook; lorebooks without entries are omitted.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn count_entries(
    db: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = LorebookId>,
) -> Result<HashMap<LorebookId, u64>, DbErr> {
    use lorebook_entry::Column as Of;
    let counted: Vec<(LorebookId, i64)> = lorebook_entry::Entity::find()
        .select_only()
        .column(Of::LorebookId)
        .column_as(Of::Id.count(), "n_entries")
        .filter(Of::LorebookId.is_in(ids))
        .group_by(Of::LorebookId)
        .into_tuple()
        .all(db)
        .await?;
    let counted = counted.into_iter();
    Ok(counted
        .map(|(id, n)| (id, u64::try_from(n).unwrap_or(0)))
        .collect())
}
