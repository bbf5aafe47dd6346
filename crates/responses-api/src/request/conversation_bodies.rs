//! Parses and validates the bodies of requests to `/v1/conversations`: a new API conversation, new
//! metadata, and items to append.

use serde_json::{Map, Value};

use crate::request::error::RequestError;
use crate::request::items::input_items;
use crate::request::object_reader::ObjectReader;
use crate::request::{object_reader, parameters};

/// The maximum number of items in one request.
const MAX_ITEMS: usize = 20;

/// A new API conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct NewApiConversation {
    /// Texts of the client.
    pub metadata: Map<String, Value>,
    /// Items in the form in which they are stored.
    pub items: Vec<Value>,
}

impl NewApiConversation {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&["metadata", "items"]);
            Self {
                metadata: parameters::metadata(body),
                items: items(body).unwrap_or_default(),
            }
        })
    }
}

/// Parses the new metadata of a conversation.
///
/// # Errors
/// Returns the first invalid field.
pub fn parse_metadata(body: &Map<String, Value>) -> Result<Map<String, Value>, RequestError> {
    object_reader::parse(body, |body| {
        body.require_known(&["metadata"]);
        parameters::metadata(body)
    })
}

/// Parses the items to append to a conversation.
///
/// # Errors
/// Returns the first invalid field.
pub fn parse_items(body: &Map<String, Value>) -> Result<Vec<Value>, RequestError> {
    object_reader::parse(body, |body| {
        body.require_known(&["items"]);
        let items = items(body);
        if items.is_none() {
            body.missing("items", "Send a list of items.");
        }
        items.unwrap_or_default()
    })
}

fn items(body: &ObjectReader) -> Option<Vec<Value>> {
    let items = body.list("items")?;
    Some(input_items::list(body, "items", items, MAX_ITEMS))
}
