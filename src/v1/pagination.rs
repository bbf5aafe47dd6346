//! Lists: pages by the place of an item, never by time.

use sea_orm::Order;
use serde_json::{Value, json};

use crate::v1::error::{V1Error, V1Result};
use crate::v1::fields::wrong_value;

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;

/// What may be asked for beside the usual.
pub const INCLUDABLE: [&str; 2] = [
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
];

/// The parameters behind the question mark.
pub struct ListQuery(Vec<(String, String)>);

impl ListQuery {
    /// Reads the query of an address; what is broken there is left out.
    pub fn parse(query: &str) -> Self {
        let pairs = actix_web::web::Query::<Vec<(String, String)>>::from_query(query);
        Self(pairs.map(|it| it.into_inner()).unwrap_or_default())
    }

    /// The last value under this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|it| it.0 == name);
        found.map(|it| it.1.as_str())
    }

    /// A truth; absent is `false`.
    ///
    /// # Errors
    /// 400.
    pub fn flag(&self, name: &str) -> V1Result<bool> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(wrong_value(name, "true or false")),
        }
    }

    /// What is to be told beside the usual. Nothing that may be asked for is ever left out here, so
    /// there is nothing to do for it.
    ///
    /// # Errors
    /// 400 for what cannot be told.
    pub fn require_known_includes(&self) -> V1Result<()> {
        let is_include = |it: &&(String, String)| ["include", "include[]"].contains(&it.0.as_str());
        let mut asked = self.0.iter().filter(is_include);
        match asked.all(|it| INCLUDABLE.contains(&it.1.as_str())) {
            true => Ok(()),
            false => Err(wrong_value("include", &INCLUDABLE.join(" or "))),
        }
    }

    /// A whole number from 0 on.
    ///
    /// # Errors
    /// 400.
    pub fn number(&self, name: &str) -> V1Result<Option<i64>> {
        let read = |it: &str| it.parse().ok().filter(|it| *it >= 0);
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number = read(text).ok_or_else(|| wrong_value(name, "a whole number from 0 on"))?;
        Ok(Some(number))
    }
}

/// The page that is asked for.
pub struct ListPage {
    pub limit: usize,
    pub order: Order,
    /// The id of the item before it.
    pub after: Option<String>,
}

impl ListPage {
    /// Reads what is asked for.
    ///
    /// # Errors
    /// 400 for a limit or an order that makes no sense.
    pub fn from_query(query: &ListQuery) -> V1Result<Self> {
        let limit = match query.get("limit") {
            None => DEFAULT_LIMIT,
            Some(text) => text
                .parse()
                .ok()
                .filter(|it| (1..=MAX_LIMIT).contains(it))
                .ok_or_else(|| wrong_value("limit", "a whole number from 1 to 100"))?,
        };
        let order = match query.get("order") {
            None | Some("desc") => Order::Desc,
            Some("asc") => Order::Asc,
            Some(_) => return Err(wrong_value("order", "asc or desc")),
        };
        Ok(Self {
            limit,
            order,
            after: query.get("after").map(str::to_owned),
        })
    }

    /// The page, from the items in its order after its place: all, or one more than its limit.
    pub fn to_list(&self, mut items: Vec<Value>) -> Value {
        let has_more = items.len() > self.limit;
        items.truncate(self.limit);
        list_object(items, has_more)
    }
}

/// 400: nothing in this list has that id.
pub fn unknown_cursor() -> V1Error {
    wrong_value("after", "the id of an item of this list")
}

/// A page of items, which come oldest first.
///
/// # Errors
/// 400 for a limit, an order or a place that makes no sense.
pub fn to_page(mut items: Vec<Value>, query: &ListQuery) -> V1Result<Value> {
    let asked = ListPage::from_query(query)?;
    if asked.order == Order::Desc {
        items.reverse();
    }
    if let Some(after) = &asked.after {
        let at = items.iter().position(|it| it["id"] == after.as_str());
        items.drain(..=at.ok_or_else(unknown_cursor)?);
    }
    Ok(asked.to_list(items))
}

/// These items as a list.
pub fn list_object(items: Vec<Value>, has_more: bool) -> Value {
    let id = |item: Option<&Value>| item.map_or(Value::Null, |it| it["id"].clone());
    json!({
        "object": "list",
        "first_id": id(items.first()),
        "last_id": id(items.last()),
        "has_more": has_more,
        "data": items,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ListQuery, to_page};

    fn ids(query: &str) -> (Vec<String>, bool) {
        let items = (0..5).map(|it| json!({ "id": it.to_string() })).collect();
        let page = to_page(items, &ListQuery::parse(query)).unwrap();
        let data = page["data"].as_array().unwrap();
        let ids = data.iter().map(|it| it["id"].as_str().unwrap().to_owned());
        (ids.collect(), page["has_more"] == true)
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
