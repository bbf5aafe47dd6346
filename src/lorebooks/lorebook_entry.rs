//! Table `lorebook_entries`: the entries of lorebooks, each stored as one JSON document.

use base::ids::{LorebookEntryId, LorebookId};
use sea_orm::ActiveValue::{NotSet, Set, Unchanged};
use sea_orm::entity::prelude::*;
use sea_orm::{QueryOrder, QuerySelect};
use serde_json::{Map, Value, json};
use tavern::lorebook_files::file::MAX_ENTRIES;

use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::db::reading::row_slices;

/// The number of rows in one INSERT.
const ROWS_PER_INSERT: usize = 500;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "lorebook_entries")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: LorebookEntryId,
    pub lorebook_id: LorebookId,
    /// The position in its lorebook; unique there.
    pub position: i64,
    /// A complete entry in the `character_book` format; see `crates/tavern/src/lorebook_files/world_info.rs`.
    #[sea_orm(column_type = "JsonBinary")]
    pub document: Json,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Why an entry cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AddEntryError {
    /// The lorebook has the maximum number of entries.
    #[error("a lorebook has at most {MAX_ENTRIES} entries")]
    LimitReached,
    #[error(transparent)]
    Db(#[from] DbErr),
}

impl Model {
    /// Returns the document as an object.
    pub fn fields(&self) -> Map<String, Value> {
        self.document.as_object().cloned().unwrap_or_default()
    }

    /// Returns the entry's number in files, as text.
    pub fn uid(&self) -> Option<String> {
        match self.document.get("id")? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// Returns the document for the API, with the row's id as `id` and the entry's number as `uid`.
    pub fn view(&self) -> Map<String, Value> {
        let mut view = Map::new();
        view.insert("id".to_owned(), json!(self.id));
        view.insert("lorebook_id".to_owned(), json!(self.lorebook_id));
        let fields = self.fields();
        let uid = fields.get("id").cloned().unwrap_or_default();
        for (field, value) in fields {
            view.entry(field).or_insert(value);
        }
        view.insert("uid".to_owned(), uid);
        view
    }
}

/// Returns the entries of a lorebook by position.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_for_lorebook(
    db: &impl ConnectionTrait,
    book: LorebookId,
) -> Result<Vec<Model>, DbErr> {
    select_for_lorebook(book)
        .order_by_asc(Column::Position)
        .all(db)
        .await
}

/// Returns a page of the entries of a lorebook, limited by their bytes.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_page_for_lorebook(
    db: &impl ConnectionTrait,
    book: LorebookId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let bytes = row_slices::json_bytes(Column::Document);
    page.load_large(select_for_lorebook(book), Column::Id, bytes, db)
        .await
}

fn select_for_lorebook(book: LorebookId) -> Select<Entity> {
    Entity::find().filter(Column::LorebookId.eq(book))
}

/// Returns an entry of a lorebook.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_in_lorebook(
    db: &impl ConnectionTrait,
    book: LorebookId,
    id: LorebookEntryId,
) -> Result<Option<Model>, DbErr> {
    let entry = Entity::find_by_id(id).filter(Column::LorebookId.eq(book));
    entry.one(db).await
}

/// Inserts entries after the existing ones.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn append(
    tx: &impl ConnectionTrait,
    book: LorebookId,
    first: i64,
    entries: Vec<Map<String, Value>>,
) -> Result<(), DbErr> {
    let rows = (first..).zip(entries).map(|(position, entry)| ActiveModel {
        id: NotSet,
        lorebook_id: Set(book),
        position: Set(position),
        document: Set(Value::Object(entry)),
    });
    let rows: Vec<ActiveModel> = rows.collect();
    for piece in rows.chunks(ROWS_PER_INSERT) {
        Entity::insert_many(piece.to_vec())
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}

/// Inserts an entry at the end of a lorebook. An entry without a number gets the next one.
///
/// # Errors
/// Returns `LimitReached` when the lorebook is full, and `Db` when the database fails.
pub async fn create(
    db: &Db,
    book: LorebookId,
    mut entry: Map<String, Value>,
) -> Result<Model, AddEntryError> {
    db.write(move |tx| {
        Box::pin(async move {
            let n_entries = select_for_lorebook(book).count(tx).await?;
            if n_entries >= MAX_ENTRIES as u64 {
                return Err(AddEntryError::LimitReached);
            }
            let last: Option<Option<i64>> = select_for_lorebook(book)
                .select_only()
                .column_as(Column::Position.max(), "last")
                .into_tuple()
                .one(tx)
                .await?;
            let position = last.flatten().map_or(0, |it| it + 1);
            entry.entry("id").or_insert_with(|| json!(position));
            let row = ActiveModel {
                id: NotSet,
                lorebook_id: Set(book),
                position: Set(position),
                document: Set(Value::Object(entry)),
            };
            Ok(row.insert(tx).await?)
        })
    })
    .await
}

/// Replaces the document of an entry.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn update(
    db: &Db,
    id: LorebookEntryId,
    entry: Map<String, Value>,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: Unchanged(id),
        document: Set(Value::Object(entry)),
        ..Default::default()
    };
    db.write(move |tx| Box::pin(async move { row.update(tx).await }))
        .await
}

/// Deletes an entry.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete(db: &Db, id: LorebookEntryId) -> Result<(), DbErr> {
    db.write(move |tx| Box::pin(async move { Entity::delete_by_id(id).exec(tx).await.map(|_| ()) }))
        .await
}
