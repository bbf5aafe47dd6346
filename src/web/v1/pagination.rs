//! Parses the query parameters of `/v1` requests, and builds pages of lists whose cursor is the id
//! of an item.

use responses_api::objects::List;
use responses_api::request::parameters::{INCLUDABLE, INCLUDABLE_WITHOUT_EFFECT};
use serde_json::Value;

use crate::web::extract::pagination;
use crate::web::v1::error::{V1Error, V1Result};

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;

/// The query parameters of a request.
pub struct ListQuery(Vec<(String, String)>);

impl ListQuery {
    /// Parses a query string.
    pub fn parse(query: &str) -> Self {
        Self(pagination::parse_pairs(query))
    }

    /// Returns the last value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|it| it.0 == name);
        found.map(|it| it.1.as_str())
    }

    /// Returns a boolean; an absent parameter is `false`.
    ///
    /// # Errors
    /// Returns 400 for anything but `true` and `false`.
    pub fn flag(&self, name: &str) -> V1Result<bool> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(V1Error::wrong_value(name, "true or false")),
        }
    }

    /// Rejects unknown values of `include`. The known ones need no handling, because their data is
    /// always returned, or does not exist on this server.
    ///
    /// # Errors
    /// Returns 400 for an unknown value.
    pub fn require_known_includes(&self) -> V1Result<()> {
        let is_include = |it: &&(String, String)| ["include", "include[]"].contains(&it.0.as_str());
        let mut asked = self.0.iter().filter(is_include);
        let known = [&INCLUDABLE[..], &INCLUDABLE_WITHOUT_EFFECT[..]].concat();
        match asked.all(|it| known.contains(&it.1.as_str())) {
            true => Ok(()),
            false => {
                let expected = format!("one of {}", known.join(", "));
                Err(V1Error::wrong_value("include", &expected))
            }
        }
    }

    /// Returns an integer of at least 0.
    ///
    /// # Errors
    /// Returns 400 for anything else.
    pub fn number(&self, name: &str) -> V1Result<Option<i64>> {
        let read = |it: &str| it.parse().ok().filter(|it| *it >= 0);
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number =
            read(text).ok_or_else(|| V1Error::wrong_value(name, "an integer of at least 0"))?;
        Ok(Some(number))
    }
}

/// The requested page.
pub struct ListPage {
    pub limit: usize,
    /// Newest first.
    pub is_descending: bool,
    /// The id of the item before the page.
    pub after: Option<String>,
    /// The id of the item after the page; only the lists of assistants and threads have it.
    pub before: Option<String>,
}

impl ListPage {
    /// Parses the page parameters.
    ///
    /// # Errors
    /// Returns 400 for an invalid limit or order.
    pub fn from_query(query: &ListQuery) -> V1Result<Self> {
        let limit = match query.get("limit") {
            None => DEFAULT_LIMIT,
            Some(text) => text
                .parse()
                .ok()
                .filter(|it| (1..=MAX_LIMIT).contains(it))
                .ok_or_else(|| V1Error::wrong_value("limit", "an integer between 1 and 100"))?,
        };
        let is_descending = match query.get("order") {
            None | Some("desc") => true,
            Some("asc") => false,
            Some(_) => return Err(V1Error::wrong_value("order", "asc or desc")),
        };
        Ok(Self {
            limit,
            is_descending,
            after: query.get("after").map(str::to_owned),
            before: query.get("before").map(str::to_owned),
        })
    }

    /// Builds the page from the items that follow the cursor, in the requested order: all of them,
    /// or one more than the limit, which sets `has_more`.
    pub fn to_list(&self, mut items: Vec<Value>) -> List<Value> {
        let has_more = items.len() > self.limit;
        items.truncate(self.limit);
        list_items(items, has_more)
    }
}

/// 400: the cursor `after` is not the id of an item of this list.
pub fn unknown_cursor() -> V1Error {
    unknown_cursor_in("after")
}

/// 400: the cursor in this parameter is not the id of an item of this list.
pub fn unknown_cursor_in(name: &str) -> V1Error {
    V1Error::wrong_value(name, "the id of an item of this list")
}

/// Returns the requested page of `items`, which are ordered oldest first.
///
/// # Errors
/// Returns 400 for an invalid limit, order or cursor.
pub fn to_page(mut items: Vec<Value>, query: &ListQuery) -> V1Result<List<Value>> {
    let asked = ListPage::from_query(query)?;
    if asked.is_descending {
        items.reverse();
    }
    if let Some(after) = &asked.after {
        let at = items.iter().position(|it| it["id"] == after.as_str());
        items.drain(..=at.ok_or_else(unknown_cursor)?);
    }
    Ok(asked.to_list(items))
}

/// Returns the list of these items.
pub fn list_items(items: Vec<Value>, has_more: bool) -> List<Value> {
    List::new(items, has_more, |it| it["id"].as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ListQuery, to_page};

    fn ids(query: &str) -> (Vec<String>, bool) {
        let items = (0..5).map(|it| json!({ "id": it.to_string() })).collect();
        let page = to_page(items, &ListQuery::parse(query)).unwrap();
        let ids = page.data.iter();
        let ids = ids.map(|it| it["id"].as_str().unwrap().to_owned());
        (ids.collect(), page.has_more)
    }

    #[test]
    fn a_page_continues_after_the_previous_one() {
        assert_eq!(ids("limit=2"), (vec!["4".into(), "3".into()], true));
        assert_eq!(ids("limit=2&after=3"), (vec!["2".into(), "1".into()], true));
        assert_eq!(ids("limit=2&after=1"), (vec!["0".into()], false));
        assert_eq!(ids("order=asc&after=3"), (vec!["4".into()], false));
    }

    #[test]
    fn an_invalid_query_is_rejected() {
        for query in ["limit=0", "limit=101", "limit=x", "order=up", "after=9"] {
            assert!(
                to_page(vec![Value::Null], &ListQuery::parse(query)).is_err(),
                "{query}"
            );
        }
    }
}
