//! The tool settings of a space: which built-in tools and MCP servers its characters may use, and
//! which of them need approval. No I/O.

use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Maximum number of MCP servers per space.
pub const MAX_SERVERS: usize = 8;

/// Condition under which characters may call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ToolUse)]
pub enum ToolPermission {
    /// At any time.
    Allowed,
    /// Only after a moderator approves the individual call.
    WithApproval,
}

/// Built-in tools that characters may call. A tool that is not set must not be called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = RoomTools)]
pub struct BuiltinToolSettings {
    pub time: Option<ToolPermission>,
    pub dice: Option<ToolPermission>,
    pub web_fetch: Option<ToolPermission>,
    /// Search, add and forget memories of the character.
    pub memory: Option<ToolPermission>,
}

/// An MCP server whose tools characters may call. Credentials are not part of the settings, because
/// every member can read them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = RoomToolServer)]
pub struct McpServerSettings {
    /// Display label of the server.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-zA-Z0-9_-]+$")]
    pub label: String,
    /// URL of the server (streamable HTTP).
    #[schema(max_length = 2_000)]
    pub url: String,
    /// Default: `with_approval`.
    #[serde(rename = "use")]
    pub r#use: Option<ToolPermission>,
    /// Names of the allowed tools; all tools if omitted.
    pub allowed_tools: Option<Vec<String>>,
}

impl McpServerSettings {
    /// Returns whether every provider API accepts the label.
    pub fn has_valid_label(&self) -> bool {
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
        (1..=64).contains(&self.label.len()) && self.label.bytes().all(is_plain)
    }

    /// Returns whether the URL is http or https and has no user name, password, query or fragment,
    /// because those may contain a key. Whether the address is allowed is checked when it is
    /// called.
    pub fn has_valid_url(&self) -> bool {
        let url = Url::parse(&self.url);
        self.url.len() <= 2_000
            && url.is_ok_and(|it| {
                matches!(it.scheme(), "http" | "https")
                    && it.has_host()
                    && it.username().is_empty()
                    && it.password().is_none()
                    && it.query().is_none()
                    && it.fragment().is_none()
            })
    }
}

/// All tool settings of a space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceTools {
    /// Built-in tools by name.
    pub builtin: Vec<(&'static str, ToolPermission)>,
    pub servers: Vec<McpServerSettings>,
}

impl SpaceTools {
    /// Reads the settings of a space. Settings that cannot be parsed allow nothing.
    pub fn from_settings(settings: &Value) -> Self {
        let builtin_settings =
            BuiltinToolSettings::deserialize(&settings["tools"]).unwrap_or_default();
        let builtin = [
            ("time", builtin_settings.time),
            ("dice", builtin_settings.dice),
            ("web_fetch", builtin_settings.web_fetch),
            ("memory", builtin_settings.memory),
        ];
        let servers = settings["tool_servers"].as_array();
        let servers = servers.map_or(&[][..], Vec::as_slice).iter();
        let servers = servers.filter_map(|it| McpServerSettings::deserialize(it).ok());
        Self {
            builtin: builtin
                .into_iter()
                .filter_map(|(name, may)| Some((name, may?)))
                .collect(),
            servers: servers.take(MAX_SERVERS).collect(),
        }
    }

    /// Removes a built-in tool.
    pub fn remove_builtin(&mut self, name: &str) {
        self.builtin.retain(|it| it.0 != name);
    }

    /// Returns whether a built-in tool is allowed.
    pub fn allows_builtin(&self, name: &str) -> bool {
        self.builtin.iter().any(|it| it.0 == name)
    }

    /// Returns whether no tools are allowed.
    pub fn is_empty(&self) -> bool {
        self.builtin.is_empty() && self.servers.is_empty()
    }
}

/// Returns imported settings with approval required for every tool, because the author of a file
/// must not decide which tools run without approval.
pub fn with_approval(mut settings: Value) -> Value {
    let approval = serde_json::json!(ToolPermission::WithApproval);
    let tools = settings.get_mut("tools").and_then(Value::as_object_mut);
    for (_, tool) in tools.into_iter().flatten() {
        if !tool.is_null() {
            *tool = approval.clone();
        }
    }
    let servers = settings.get_mut("tool_servers");
    for server in servers.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(server) = server.as_object_mut() {
            server.insert("use".to_owned(), approval.clone());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{SpaceTools, ToolPermission, with_approval};

    #[test]
    fn missing_and_invalid_settings_allow_nothing() {
        assert!(SpaceTools::from_settings(&json!({})).is_empty());
        assert!(SpaceTools::from_settings(&json!({"tools": {"dice": "often"}})).is_empty());
        assert!(
            SpaceTools::from_settings(&json!({"tool_servers": [{"label": "a"}, 5]})).is_empty()
        );
        let tools = SpaceTools::from_settings(&json!({
            "tools": {"dice": "allowed", "time": null, "web_fetch": "with_approval"},
            "tool_servers": [{"label": "wiki", "url": "https://wiki.example/mcp"}],
        }));

        let expected = [
            ("dice", ToolPermission::Allowed),
            ("web_fetch", ToolPermission::WithApproval),
        ];
        assert_eq!(tools.builtin, expected);
        assert_eq!((tools.servers.len(), tools.servers[0].r#use), (1, None));
    }

    #[test]
    fn every_imported_tool_needs_approval() {
        let settings = with_approval(json!({
            "tools": {"dice": "allowed", "time": null, "web_fetch": "allowed"},
            "tool_servers": [{"label": "a", "url": "https://a.example", "use": "allowed"}],
        }));

        assert_eq!(
            settings["tools"],
            json!({"dice": "with_approval", "time": null, "web_fetch": "with_approval"})
        );
        assert_eq!(settings["tool_servers"][0]["use"], "with_approval");
    }
}
