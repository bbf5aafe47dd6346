//! Parses the description of a tool that an MCP server returns, and converts it to the JSON of
//! response items.

use serde_json::{Value, json};

/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 128;

/// Maximum length of a description, in bytes; a longer one is cut.
const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;

/// A tool of an MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpTool {
    pub name: String,
    pub description: Option<String>,
    /// A JSON Schema of the arguments.
    pub input_schema: Value,
    /// Hints from the server, stored unchanged.
    pub annotations: Option<Value>,
}

impl McpTool {
    /// Parses a tool from a server's list or from a stored item. Returns `None` if it has no
    /// callable name.
    pub fn parse(tool: &Value) -> Option<Self> {
        let name = tool["name"].as_str()?;
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
            return None;
        }
        let schema = tool.get("inputSchema").or(tool.get("input_schema"));
        let schema = schema.filter(|it| it.is_object()).cloned();
        let mut description = tool["description"].as_str().map(str::to_owned);
        if let Some(text) = &mut description {
            text.truncate(text.floor_char_boundary(MAX_DESCRIPTION_BYTES));
        }
        Some(Self {
            name: name.to_owned(),
            description,
            input_schema: schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} })),
            annotations: tool.get("annotations").filter(|it| it.is_object()).cloned(),
        })
    }

    /// Returns the tool as it appears in items.
    pub fn view(&self) -> Value {
        json!({
            "name": self.name, "description": self.description,
            "input_schema": self.input_schema, "annotations": self.annotations,
        })
    }

    /// Returns whether the server declares that the tool changes nothing.
    pub fn is_read_only(&self) -> bool {
        let hints = self.annotations.as_ref();
        hints.is_some_and(|it| it["readOnlyHint"] == true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::McpTool;

    #[test]
    fn a_tool_is_parsed_from_a_server_and_from_an_item() {
        let document = json!({
            "name": "search", "description": "Looks.", "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true }, "outputSchema": {},
        });

        let listed = McpTool::parse(&document).unwrap();

        assert!(listed.is_read_only());
        assert_eq!(McpTool::parse(&listed.view()), Some(listed));
    }

    #[test]
    fn a_tool_without_a_callable_name_is_skipped() {
        for tool in [
            json!({}),
            json!({ "name": "" }),
            json!({ "name": "x".repeat(129) }),
            json!("x"),
        ] {
            assert_eq!(McpTool::parse(&tool), None);
        }
        let bare = McpTool::parse(&json!({ "name": "x" })).unwrap();
        assert_eq!(bare.input_schema["type"], "object");
        assert!(!bare.is_read_only());
    }
}
