//! A tool that a server has, as the server tells of it.

use serde_json::{Value, json};

/// The longest name.
const MAX_NAME_CHARS: usize = 128;

/// The longest description, in bytes; more is cut.
const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct McpTool {
    pub name: String,
    pub description: Option<String>,
    /// A JSON Schema of its arguments.
    pub input_schema: Value,
    /// Hints of its server, kept as they are.
    pub annotations: Option<Value>,
}

impl McpTool {
    /// Reads one, from a server's answer or from an item. `None`: it has no name that can be called.
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

    /// As items tell of it.
    pub fn view(&self) -> Value {
        json!({
            "name": self.name, "description": self.description,
            "input_schema": self.input_schema, "annotations": self.annotations,
        })
    }

    /// Whether its server says that it changes nothing.
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
        let told = json!({
            "name": "search", "description": "Looks.", "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true }, "outputSchema": {},
        });

        let listed = McpTool::parse(&told).unwrap();

        assert!(listed.is_read_only());
        assert_eq!(McpTool::parse(&listed.view()), Some(listed));
    }

    #[test]
    fn what_cannot_be_called_is_no_tool() {
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
