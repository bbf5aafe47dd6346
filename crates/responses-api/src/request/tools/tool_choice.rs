//! Parses and validates `tool_choice`: which of the declared tools the model may or must call.

use serde::Serialize;
use serde_json::{Value, json};

use crate::request::error;
use crate::request::object_reader::ObjectReader;
use crate::request::tools::tool;
use crate::request::tools::tool::{MAX_TOOLS, RequestTool};
use crate::server_tools;

/// Which tools the model may or must call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedChoice {
    Mode(ChoiceMode),
    /// This tool must be called.
    Tool(ToolReference),
    /// Only these tools may be called.
    Allowed {
        mode: ChoiceMode,
        tools: Vec<ToolReference>,
    },
}

/// Whether the model must call a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceMode {
    #[default]
    Auto,
    None,
    Required,
}

/// A reference to a declared tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolReference {
    Function {
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    Custom {
        name: String,
    },
    LocalShell,
    /// All tools of an MCP server, or one of them. Whether the server has it is not known yet.
    #[serde(rename = "mcp")]
    Server {
        server_label: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A tool of this server.
    #[serde(untagged)]
    Builtin {
        #[serde(rename = "type")]
        kind: String,
    },
    /// A web search by this server.
    #[serde(untagged)]
    WebSearch {
        #[serde(rename = "type")]
        kind: String,
    },
    /// A tool that this server does not run.
    #[serde(untagged)]
    Hosted {
        #[serde(rename = "type")]
        kind: String,
    },
}

impl Default for RequestedChoice {
    fn default() -> Self {
        Self::Mode(ChoiceMode::Auto)
    }
}

impl RequestedChoice {
    pub(in crate::request) fn read(body: &ObjectReader, declared: &[RequestTool]) -> Self {
        let expected = "auto, none, required, a tool, or allowed tools";
        let choice = match body.get("tool_choice") {
            None => return Self::default(),
            Some(Value::String(word)) => {
                return Self::Mode(ChoiceMode::read(body, "tool_choice", word, declared));
            }
            Some(Value::Object(_)) => body.object("tool_choice"),
            Some(_) => {
                body.wrong_type("tool_choice", expected);
                None
            }
        };
        let Some(choice) = choice else {
            return Self::default();
        };
        match choice.fields.get("type").and_then(Value::as_str) {
            Some("allowed_tools") => Self::read_allowed(&choice, declared),
            Some(_) => match ToolReference::read(&choice, declared) {
                Some(ToolReference::Hosted { kind }) => {
                    reject_hosted(&choice, "type", &kind);
                    Self::default()
                }
                found => found.map_or_else(Self::default, Self::Tool),
            },
            None => {
                choice.wrong_value("type", expected);
                Self::default()
            }
        }
    }

    fn read_allowed(choice: &ObjectReader, declared: &[RequestTool]) -> Self {
        let word = choice.text("mode").unwrap_or("auto");
        let mode = ChoiceMode::read(choice, "mode", word, declared);
        let given = choice.list("tools").unwrap_or_default();
        if !(1..=MAX_TOOLS).contains(&given.len()) {
            choice.wrong_value("tools", "1 to 128 tools");
            return Self::Mode(mode);
        }
        let tools = choice.elements("tools", given);
        let tools: Vec<ToolReference> = tools
            .filter_map(|it| ToolReference::read(&it, declared))
            .collect();
        let first = tools.first().filter(|_| mode == ChoiceMode::Required);
        if let Some(ToolReference::Hosted { kind }) = first
            && tools.iter().all(ToolReference::is_hosted)
        {
            reject_hosted(choice, "tools", kind);
        }
        Self::Allowed { mode, tools }
    }

    /// Returns the echo in the response.
    pub fn echo(&self) -> Value {
        match self {
            Self::Mode(mode) => json!(mode),
            Self::Tool(tool) => json!(tool),
            Self::Allowed { mode, tools } => {
                json!({ "type": "allowed_tools", "tools": tools, "mode": mode })
            }
        }
    }
}

impl ChoiceMode {
    /// Reads the word of a choice.
    pub(in crate::request) fn read(
        parent: &ObjectReader,
        name: &str,
        word: &str,
        declared: &[RequestTool],
    ) -> Self {
        match word {
            "auto" => Self::Auto,
            "none" => Self::None,
            "required" => {
                let expected = "auto or none, because no tool is declared";
                parent.require(!declared.is_empty(), name, expected);
                if let Some(RequestTool::Hosted(first)) = declared.first()
                    && declared
                        .iter()
                        .all(|it| matches!(it, RequestTool::Hosted(_)))
                {
                    let kind = first.get("type").and_then(Value::as_str);
                    reject_hosted(parent, name, kind.unwrap_or_default());
                }
                Self::Required
            }
            _ => {
                parent.wrong_value(name, "auto, none, required, or an object");
                Self::Auto
            }
        }
    }
}

impl ToolReference {
    fn read(choice: &ObjectReader, declared: &[RequestTool]) -> Option<Self> {
        let kind = choice.fields.get("type").and_then(Value::as_str);
        let (reference, field) = match kind.unwrap_or_default() {
            "mcp" => return Self::read_server(choice, declared),
            "function" => {
                let namespace = choice.text("namespace").map(str::to_owned);
                let name = name(choice);
                (Self::Function { name, namespace }, "name")
            }
            "custom" => (Self::Custom { name: name(choice) }, "name"),
            "local_shell" => (Self::LocalShell, "type"),
            kind if server_tools::tool_name(kind).is_some() => {
                let kind = kind.to_owned();
                (Self::Builtin { kind }, "type")
            }
            kind if tool::is_hosted(kind) => {
                let kind = kind.to_owned();
                let search = Self::WebSearch { kind: kind.clone() };
                match declared.iter().any(|it| search.is_tool(it)) {
                    true => (search, "type"),
                    false => (Self::Hosted { kind }, "type"),
                }
            }
            _ => {
                choice.wrong_value("type", "the type of a tool");
                return None;
            }
        };
        let is_declared = declared.iter().any(|it| reference.is_tool(it));
        choice.require(is_declared, field, "a tool that is declared in `tools`");
        Some(reference)
    }

    /// Returns whether this refers to the tool.
    pub(in crate::request) fn is_tool(&self, tool: &RequestTool) -> bool {
        match (self, tool) {
            (Self::Function { name, namespace }, RequestTool::Function(it)) => {
                namespace.is_none() && it.name == *name
            }
            (Self::Function { name, namespace }, RequestTool::Namespace(it)) => {
                namespace.as_ref() == Some(&it.name)
                    && it.functions.iter().any(|it| it.name == *name)
            }
            (Self::Hosted { kind }, RequestTool::Hosted(it)) => {
                it.get("type").and_then(Value::as_str) == Some(kind)
            }
            (Self::WebSearch { kind }, RequestTool::WebSearch(it)) => it.kind() == kind,
            (Self::Custom { name }, RequestTool::Custom(it)) => it.name == *name,
            (Self::LocalShell, RequestTool::LocalShell) => true,
            (Self::Builtin { kind }, RequestTool::Builtin(declared)) => {
                server_tools::model_name(kind) == server_tools::model_name(declared)
            }
            _ => false,
        }
    }

    fn is_hosted(&self) -> bool {
        matches!(self, Self::Hosted { .. })
    }

    fn read_server(choice: &ObjectReader, declared: &[RequestTool]) -> Option<Self> {
        let label = choice.text("server_label");
        let Some(server) = tool::servers(declared).find(|it| Some(it.label.as_str()) == label)
        else {
            let expected = "the label of a server that is declared in `tools`";
            choice.wrong_value("server_label", expected);
            return None;
        };
        let name = choice.text("name").map(str::to_owned);
        let names = server
            .allowed
            .as_ref()
            .and_then(|it| it.tool_names.as_ref());
        if let (Some(name), Some(names)) = (&name, names) {
            let expected = "a tool that `allowed_tools` permits";
            choice.require(names.contains(name), "name", expected);
        }
        Some(Self::Server {
            server_label: server.label.clone(),
            name,
        })
    }
}

fn name(choice: &ObjectReader) -> String {
    choice.text("name").unwrap_or_default().to_owned()
}

/// Rejects a choice that demands a tool that this server does not run.
fn reject_hosted(choice: &ObjectReader, field: &str, kind: &str) {
    let message = format!(
        "This server does not run tools of type {}, so `tool_choice` must not demand one.",
        error::quoted(kind)
    );
    choice.fail("unsupported_tool", field, message);
}
