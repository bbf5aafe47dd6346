//! Reads one page of a list: `PageQuery` is the requested range, `PageOf` the rows with the cursor
//! of the next page.
//!
//! **Invariant:** a page of large rows ([`PageQuery::load_large`]) has at most 2 MiB of documents,
//! or one document; the rest stays in the database, and `has_more` and `cursor` lead to it.

use sea_orm::sea_query::{SimpleExpr, sea_value_to_json_value};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ModelTrait, QueryFilter, QueryOrder,
    QuerySelect, Select, TryGetable, Value,
};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, Ref};

use crate::db::reading::row_slices;

/// The maximum stored bytes of a page of large rows.
const MAX_BYTES: i64 = 2 * 1024 * 1024;

/// Estimated bytes of an entry in addition to its large columns.
const ENTRY_BYTES: i64 = 1024;

/// The requested page of a list. `K` is the sort key of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageQuery<K = i64> {
    pub limit: u64,
    pub after: Option<K>,
    pub before: Option<K>,
}

/// A page of a list, in its order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Listing)]
pub struct PageOf<T> {
    #[schema(schema_with = data_schema::<T>, required)]
    pub data: Vec<T>,
    /// Whether there are more entries in the requested direction.
    pub has_more: bool,
    /// If there are more: the value for the next `after` or `before`, in the same direction.
    #[schema(schema_with = cursor_schema, required)]
    pub cursor: Option<Json>,
}

/// Returns the schema of `PageOf::data`: the entries by reference.
fn data_schema<T: ToSchema>() -> ArrayBuilder {
    ArrayBuilder::new().items(Ref::from_schema_name(T::name()))
}

/// Returns the schema of `PageOf::cursor`.
fn cursor_schema() -> ObjectBuilder {
    let types = [Type::Integer, Type::String, Type::Null];
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter(types))
        .description(Some(
            "The value for the next `after` or `before`, in the same direction; null if there are no more entries.",
        ))
}

/// The rows of a page: their keys, and the bytes of their large columns, the nearest to the cursor
/// first.
#[derive(Debug)]
pub struct PageKeys<K> {
    pub rows: Vec<(K, i64)>,
    pub has_more: bool,
}

impl<K> PageQuery<K> {
    /// Returns whether an ascending list is read towards its beginning.
    pub fn is_backwards(&self) -> bool {
        self.before.is_some() && self.after.is_none()
    }

    /// Returns whether a list that begins with the greatest key is read towards its beginning.
    pub fn is_towards_newest(&self) -> bool {
        self.after.is_some() && self.before.is_none()
    }

    /// Returns the page of these rows: those nearest to the cursor, in reading direction, one more
    /// than the limit if there are more. `key` returns the cursor that leads past a row.
    pub fn page_of<T>(&self, mut rows: Vec<T>, key: impl Fn(&T) -> Json) -> PageOf<T> {
        let has_more = self.truncate(&mut rows);
        let cursor = rows.last().filter(|_| has_more).map(key);
        PageOf {
            data: rows,
            has_more,
            cursor,
        }
    }

    /// Removes the rows after the limit. Returns whether there were any.
    fn truncate<T>(&self, rows: &mut Vec<T>) -> bool {
        let has_more = rows.len() as u64 > self.limit;
        rows.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        has_more
    }
}

impl<K: Clone + Into<Value>> PageQuery<K> {
    /// Reads this page of `select`, ordered by `key`.
    ///
    /// # Errors
    /// Returns `DbErr` when the database fails.
    pub async fn load<E: EntityTrait>(
        &self,
        select: Select<E>,
        key: E::Column,
        db: &impl ConnectionTrait,
    ) -> Result<PageOf<E::Model>, DbErr> {
        let backwards = self.is_backwards();
        let mut part = self.load_nearest(select, key, backwards, db).await?;
        if backwards {
            part.data.reverse();
        }
        Ok(part)
    }

    /// Reads a page of a list that begins with the greatest `key`.
    ///
    /// # Errors
    /// Returns `DbErr` when the database fails.
    pub async fn load_newest_first<E: EntityTrait>(
        &self,
        select: Select<E>,
        key: E::Column,
        db: &impl ConnectionTrait,
    ) -> Result<PageOf<E::Model>, DbErr> {
        let forwards = self.is_towards_newest();
        let mut part = self.load_nearest(select, key, !forwards, db).await?;
        if forwards {
            part.data.reverse();
        }
        Ok(part)
    }

    /// Reads the rows nearest to the cursor, in reading direction.
    async fn load_nearest<E: EntityTrait>(
        &self,
        select: Select<E>,
        key: E::Column,
        backwards: bool,
        db: &impl ConnectionTrait,
    ) -> Result<PageOf<E::Model>, DbErr> {
        let select = self.apply_range(select, key, backwards);
        let data = select.limit(self.limit + 1).all(db).await?;
        Ok(self.page_of(data, |it| sea_value_to_json_value(&it.get(key))))
    }

    /// Restricts `select` to this side of the cursor, the nearest rows first.
    fn apply_range<E: EntityTrait>(
        &self,
        mut select: Select<E>,
        key: E::Column,
        backwards: bool,
    ) -> Select<E> {
        if let Some(after) = self.after.clone() {
            select = select.filter(key.gt(after));
        }
        if let Some(before) = self.before.clone() {
            select = select.filter(key.lt(before));
        }
        match backwards {
            true => select.order_by_desc(key),
            false => select.order_by_asc(key),
        }
    }
}

impl<K: Clone + Into<Value> + TryGetable> PageQuery<K> {
    /// Returns the keys of this page of `select`; `bytes` is the size of a row.
    ///
    /// # Errors
    /// Returns `DbErr` when the database fails.
    pub async fn load_keys<E: EntityTrait>(
        &self,
        select: Select<E>,
        (key, bytes): (E::Column, SimpleExpr),
        backwards: bool,
        db: &impl ConnectionTrait,
    ) -> Result<PageKeys<K>, DbErr> {
        let keys = self
            .apply_range(select, key, backwards)
            .select_only()
            .column(key)
            .column_as(bytes, "bytes")
            .limit(self.limit + 1);
        let mut rows: Vec<(K, i64)> = keys.into_tuple().all(db).await?;
        let has_more = self.truncate(&mut rows);
        Ok(PageKeys { rows, has_more })
    }

    /// Reads this page of `select`, ordered by `key`, up to 2 MiB; `bytes` is the size of a row.
    ///
    /// # Errors
    /// Returns `DbErr` when the database fails.
    pub async fn load_large<E: EntityTrait>(
        &self,
        select: Select<E>,
        key: E::Column,
        bytes: SimpleExpr,
        db: &impl ConnectionTrait,
    ) -> Result<PageOf<E::Model>, DbErr>
    where
        Json: From<K>,
    {
        let backwards = self.is_backwards();
        let found = self.load_keys(select.clone(), (key, bytes), backwards, db);
        let PageKeys { mut rows, has_more } = found.await?;
        for (_, bytes) in &mut rows {
            *bytes += ENTRY_BYTES;
        }
        let n_found = rows.len();
        rows.truncate(row_slices::n_fitting(&rows, MAX_BYTES));
        let has_more = has_more || rows.len() < n_found;
        let cursor = rows.last().filter(|_| has_more).map(|it| it.0.clone());
        let keys = rows.into_iter().map(|(key, _)| key);
        let data = select.filter(key.is_in(keys)).order_by_asc(key);
        Ok(PageOf {
            data: data.all(db).await?,
            has_more,
            cursor: cursor.map(Json::from),
        })
    }
}

impl<T> PageOf<T> {
    /// Creates the page of a list that is always returned completely.
    pub fn complete(data: Vec<T>) -> Self {
        Self {
            data,
            has_more: false,
            cursor: None,
        }
    }

    /// Converts each entry.
    pub fn map<U>(self, view: impl FnMut(T) -> U) -> PageOf<U> {
        PageOf {
            data: self.data.into_iter().map(view).collect(),
            has_more: self.has_more,
            cursor: self.cursor,
        }
    }
}
