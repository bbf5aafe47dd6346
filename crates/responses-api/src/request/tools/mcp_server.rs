//! Parses and validates a declared MCP server: address, credentials, allowed tools and approval
//! rules. Unknown fields are rejected; credentials are not repeated in the response.

use std::fmt;

use serde_json::{Value, json};
use url::Url;

use crate::request::object_reader::ObjectReader;
use crate::request::server_rules::ServerRules;
use crate::request::tools::tool_names::{NAME_RULE, is_name};

/// The maximum number of headers of one server.
const MAX_HEADERS: usize = 32;

const KNOWN_FIELDS: [&str; 8] = [
    "allowed_tools",
    "authorization",
    "headers",
    "require_approval",
    "server_description",
    "server_label",
    "server_url",
    "type",
];

/// A declared MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServerTool {
    pub label: String,
    /// Without the query, which often contains a key. Whether the address may be called is checked
    /// later, when the caller is known.
    pub url: String,
    pub description: Option<String>,
    pub credentials: McpCredentials,
    /// `None` allows all of its tools.
    pub allowed: Option<ToolConditions>,
    pub approval: RequireApproval,
    /// `allowed_tools` and `require_approval` as they were given, for the echo.
    given_allowed: Option<Value>,
    given_approval: Option<Value>,
}

/// The credentials of a server. `Debug` shows none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpCredentials {
    /// The query of the URL, without `?`.
    pub query: Option<String>,
    /// The token after `Bearer`.
    pub authorization: Option<String>,
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for McpCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpCredentials(…)")
    }
}

/// Conditions that select tools of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolConditions {
    pub tool_names: Option<Vec<String>>,
    pub read_only: Option<bool>,
}

/// Which calls of a server need approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequireApproval {
    #[default]
    Always,
    Never,
    /// Only some of them.
    Filtered {
        always: ToolConditions,
        never: ToolConditions,
    },
}

impl McpServerTool {
    pub(in crate::request) fn read(tool: &ObjectReader, rules: &ServerRules) -> Option<Self> {
        let mut given = tool.fields.keys().filter(|it| tool.get(it).is_some());
        if let Some(name) = given.find(|it| !KNOWN_FIELDS.contains(&it.as_str())) {
            tool.unknown(name);
        }
        let label = required(tool, "server_label")?;
        tool.require(is_name(label), "server_label", NAME_RULE);
        let (url, query) = address(tool)?;
        let description = tool.text("server_description").map(str::to_owned);
        let credentials = McpCredentials {
            query,
            authorization: authorization(tool, rules),
            headers: headers(tool, rules),
        };
        Some(Self {
            label: label.to_owned(),
            url,
            description,
            credentials,
            allowed: allowed(tool),
            approval: RequireApproval::read(tool),
            given_allowed: tool.get("allowed_tools").cloned(),
            given_approval: tool.get("require_approval").cloned(),
        })
    }

    /// Returns the echo in the response, without credentials.
    pub fn echo(&self) -> Value {
        let approval = self.given_approval.clone();
        json!({
            "type": "mcp", "server_label": self.label, "server_url": self.url,
            "server_description": self.description, "headers": null,
            "allowed_tools": self.given_allowed,
            "require_approval": approval.unwrap_or_else(|| json!("always")),
        })
    }
}

fn required<'a>(tool: &ObjectReader<'a>, name: &str) -> Option<&'a str> {
    let text = tool.text(name);
    if text.is_none() {
        tool.missing(name, "A server requires it.");
    }
    text
}

/// Splits the URL into the address and its query.
fn address(tool: &ObjectReader) -> Option<(String, Option<String>)> {
    let Ok(mut url) = Url::parse(required(tool, "server_url")?) else {
        tool.wrong_value("server_url", "an https URL");
        return None;
    };
    let query = url.query().map(str::to_owned);
    url.set_query(None);
    Some((url.to_string(), query))
}

fn authorization(tool: &ObjectReader, rules: &ServerRules) -> Option<String> {
    let token = tool.text("authorization")?;
    // Some clients include the scheme `Bearer`.
    let token = token.strip_prefix("Bearer ").unwrap_or(token).trim();
    // A token must fit into a header.
    let is_sent = (rules.is_allowed_header)("x-authorization", token) && !token.is_empty();
    tool.require(is_sent, "authorization", "a token");
    Some(token.to_owned())
}

fn headers(tool: &ObjectReader, rules: &ServerRules) -> Vec<(String, String)> {
    let Some(headers) = tool.object("headers") else {
        return Vec::new();
    };
    let is_few = headers.fields.len() <= MAX_HEADERS;
    tool.require(is_few, "headers", "at most 32 headers");
    let mut all = Vec::new();
    for (name, value) in headers.fields {
        let Some(value) = value.as_str() else {
            headers.wrong_type(name, "a string");
            continue;
        };
        if name.eq_ignore_ascii_case("authorization") {
            headers.wrong_value(name, "absent; use `authorization` instead");
        }
        let is_allowed = (rules.is_allowed_header)(name, value);
        headers.require(is_allowed, name, "a header that MCP does not set by itself");
        all.push((name.clone(), value.to_owned()));
    }
    all
}

fn allowed(tool: &ObjectReader) -> Option<ToolConditions> {
    match tool.get("allowed_tools")? {
        Value::Array(names) => Some(ToolConditions {
            tool_names: Some(tool.strings("allowed_tools", names)),
            read_only: None,
        }),
        Value::Object(_) => Some(ToolConditions::read(tool, "allowed_tools")),
        _ => {
            tool.wrong_type("allowed_tools", "a list of names or a filter");
            None
        }
    }
}

impl RequireApproval {
    fn read(tool: &ObjectReader) -> Self {
        let name = "require_approval";
        let expected = "always, never, or an object with filters";
        match tool.get(name) {
            None => return Self::Always,
            Some(Value::String(word)) if word == "always" => return Self::Always,
            Some(Value::String(word)) if word == "never" => return Self::Never,
            Some(Value::Object(object)) if !object.is_empty() => {}
            Some(Value::String(_) | Value::Object(_)) => tool.wrong_value(name, expected),
            Some(_) => tool.wrong_type(name, expected),
        }
        let Some(filters) = tool.object(name) else {
            return Self::Always;
        };
        filters.require_known(&["always", "never"]);
        let read = |name: &str| match filters.object(name) {
            None => ToolConditions::default(),
            Some(_) => ToolConditions::read(&filters, name),
        };
        Self::Filtered {
            always: read("always"),
            never: read("never"),
        }
    }
}

impl ToolConditions {
    /// Reads the object in the field `name`.
    fn read(parent: &ObjectReader, name: &str) -> Self {
        let Some(filter) = parent.object(name) else {
            return Self::default();
        };
        filter.require_known(&["tool_names", "read_only"]);
        let names = filter.list("tool_names");
        let read_only = filter.flag("read_only");
        let conditions = Self {
            tool_names: names.map(|it| filter.strings("tool_names", it)),
            read_only,
        };
        let is_empty = conditions == Self::default();
        parent.require(!is_empty, name, "`tool_names` or `read_only`");
        conditions
    }
}
