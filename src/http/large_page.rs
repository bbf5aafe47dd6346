//! Pages of lists with large rows: reads only as many rows as one response may contain.
//!
//! **Invariant:** a response has at most [`MAX_BYTES`] of documents, or one document; the rest
//! stays in the database, and `has_more` and `cursor` lead to it.

use sea_orm::sea_query::SimpleExpr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select,
    TryGetable, Value,
};
use serde_json::Value as Json;

use crate::db::slices;
use crate::http::pagination::{PageOf, PageQuery};

/// The maximum stored bytes of one response.
pub const MAX_BYTES: i64 = 2 * 1024 * 1024;

/// Estimated bytes of an entry in addition to its large columns.
const ENTRY_BYTES: i64 = 1024;

/// The rows of a page: their keys, and the bytes of their large columns, the nearest to the cursor
/// first.
#[derive(Debug)]
pub struct PageKeys<K> {
    pub rows: Vec<(K, i64)>,
    pub has_more: bool,
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
        let has_more = rows.len() as u64 > self.limit;
        rows.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Ok(PageKeys { rows, has_more })
    }

    /// Reads this page of `select`, ordered by `key`, up to [`MAX_BYTES`]; `bytes` is the size of a
    /// row.
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
        rows.truncate(slices::n_fitting(&rows, MAX_BYTES));
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
