//! Converts the page parameters of a request to the range of a list whose cursors are ids.

use crate::db::backend::DbError;
use crate::responses::threads::list_range::ListRange;
use crate::web::v1::error::V1Result;
use crate::web::v1::pagination;
use crate::web::v1::pagination::{ListPage, ListQuery};

/// Returns the requested range. `find_position` returns the position of the object with an id.
///
/// # Errors
/// Returns 400 for an invalid limit or order, and for a cursor that is not in the list.
pub async fn range<P>(
    query: &ListQuery,
    find_position: impl AsyncFn(&str) -> Result<Option<P>, DbError>,
) -> V1Result<ListRange<P>> {
    let page = ListPage::from_query(query)?;
    let find = async |name: &str, id: Option<String>| -> V1Result<Option<P>> {
        let Some(id) = id else {
            return Ok(None);
        };
        let position = find_position(&id).await?;
        let position = position.ok_or_else(|| pagination::unknown_cursor_in(name))?;
        Ok(Some(position))
    };
    Ok(ListRange {
        after: find("after", page.after).await?,
        before: find("before", page.before).await?,
        is_descending: page.is_descending,
        limit: page.limit,
    })
}
