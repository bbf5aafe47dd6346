//! Reads the declaration of the tool `web_search`, which a server runs if its operator configures a search
//! endpoint.

use serde_json::{Map, Value};

use crate::request::object_reader::ObjectReader;
use crate::request::tools::tool_names::is_name;

/// The name of the tool on this server; each of its types begins with this name.
pub const NAME: &str = "web_search";

/// The maximum number of domains to which a request limits the results.
const MAX_DOMAINS: usize = 100;

/// The fields that limit or name the tool; the others only give hints.
const KNOWN_FIELDS: [&str; 2] = ["type", "filters"];

/// The declaration of the tool.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSearch {
    /// The declaration as the client sent it.
    pub fields: Map<String, Value>,
    /// The domains to which the results are limited; empty for all.
    pub allowed_domains: Vec<String>,
}

/// Returns whether this type of tool searches the web, for example `web_search_preview`.
pub(in crate::request) fn is_type(kind: &str) -> bool {
    kind.starts_with(NAME) && is_name(kind)
}

/// Returns the fields of a declaration that have no effect.
pub(in crate::request) fn ignored_hints(tool: &Value) -> impl Iterator<Item = &str> {
    let fields = tool.as_object().into_iter().flatten();
    let hints =
        fields.filter(|(name, value)| !value.is_null() && !KNOWN_FIELDS.contains(&name.as_str()));
    hints.map(|it| it.0.as_str())
}

impl WebSearch {
    pub(in crate::request) fn read(tool: &ObjectReader) -> Self {
        let mut allowed_domains = Vec::new();
        if let Some(filters) = tool.object("filters") {
            filters.require_known(&["allowed_domains"]);
            let given = filters.list("allowed_domains").unwrap_or_default();
            let is_short = given.len() <= MAX_DOMAINS;
            filters.require(is_short, "allowed_domains", "at most 100 domains");
            allowed_domains = filters.strings("allowed_domains", given);
        }
        Self {
            fields: tool.fields.clone(),
            allowed_domains,
        }
    }

    /// Returns the type with which the client declared the tool.
    pub(in crate::request) fn kind(&self) -> &str {
        let kind = self.fields.get("type").and_then(Value::as_str);
        kind.unwrap_or_default()
    }
}
