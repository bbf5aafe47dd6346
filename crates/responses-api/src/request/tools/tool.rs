//! Parses and validates the tools that a request declares, and returns them as the response repeats
//! them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::request::object_reader::ObjectReader;
use crate::request::server_rules::ServerRules;
use crate::request::tools::mcp_server::McpServerTool;
use crate::request::tools::tool_names::{NAME_RULE, SHELL_TOOL_NAME, is_name};
use crate::server_tools;

/// The maximum number of tools in one request.
pub(in crate::request) const MAX_TOOLS: usize = 128;

/// The maximum number of MCP servers in one request.
const MAX_SERVERS: usize = 16;

/// A declared tool.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestTool {
    Function(FunctionTool),
    Custom(CustomTool),
    /// The client's shell.
    LocalShell,
    /// A tool of this server; contains its type.
    Builtin(String),
    /// The tools of an MCP server.
    Mcp(Box<McpServerTool>),
}

/// A tool of the client, called with JSON arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionTool {
    pub name: String,
    pub description: Option<String>,
    /// The JSON Schema of the arguments.
    pub parameters: Option<Map<String, Value>>,
    pub strict: Option<bool>,
}

/// A tool of the client, called with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomTool {
    pub name: String,
    pub description: Option<String>,
    pub format: CustomFormat,
}

/// The text with which a custom tool is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CustomFormat {
    Text,
    Grammar {
        syntax: GrammarSyntax,
        definition: String,
    },
}

/// The language of a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrammarSyntax {
    Lark,
    Regex,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum CustomFormatType {
    Text,
    Grammar,
}

/// Reads `tools`.
pub(in crate::request) fn tools(body: &ObjectReader, rules: &ServerRules) -> Vec<RequestTool> {
    let given = body.list("tools").unwrap_or_default();
    if given.len() > MAX_TOOLS {
        body.wrong_value("tools", "at most 128 tools");
        return Vec::new();
    }
    let mut tools: Vec<RequestTool> = Vec::new();
    for (at, tool) in given.iter().enumerate() {
        let at = format!("tools[{at}]");
        let Some(fields) = body.element(&at, tool) else {
            continue;
        };
        let Some(tool) = RequestTool::read(&fields, rules) else {
            continue;
        };
        if let RequestTool::Mcp(server) = &tool {
            let is_new = servers(&tools).all(|it| it.label != server.label);
            fields.require(is_new, "server_label", "unique in the request");
            body.require(
                servers(&tools).count() < MAX_SERVERS,
                &at,
                "at most 16 servers",
            );
        } else {
            let is_new = tools.iter().all(|it| it.model_name() != tool.model_name());
            fields.require(is_new, "name", "unique in the request");
        }
        tools.push(tool);
    }
    tools
}

/// Returns the MCP servers among the tools.
pub fn servers(tools: &[RequestTool]) -> impl Iterator<Item = &McpServerTool> {
    tools.iter().filter_map(|it| match it {
        RequestTool::Mcp(server) => Some(server.as_ref()),
        _ => None,
    })
}

impl RequestTool {
    fn read(tool: &ObjectReader, rules: &ServerRules) -> Option<Self> {
        match tool.text("type") {
            Some("function") => FunctionTool::read(tool).map(Self::Function),
            Some("custom") => CustomTool::read(tool).map(Self::Custom),
            Some("mcp") => McpServerTool::read(tool, rules).map(|it| Self::Mcp(Box::new(it))),
            Some("local_shell") => {
                require_known_fields(tool, &["type"]);
                Some(Self::LocalShell)
            }
            Some(kind) => match server_tools::tool_name(kind) {
                Some(name) if (rules.is_builtin_tool)(name) => {
                    require_known_fields(tool, &["type"]);
                    Some(Self::Builtin(kind.to_owned()))
                }
                _ => {
                    reject_type(tool);
                    None
                }
            },
            None => {
                tool.missing("type", "A tool requires `type`.");
                None
            }
        }
    }

    /// Returns the name for the model; an MCP server has none.
    pub fn model_name(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Function(it) => Some(it.name.as_str().into()),
            Self::Custom(it) => Some(it.name.as_str().into()),
            Self::LocalShell => Some(SHELL_TOOL_NAME.into()),
            Self::Builtin(kind) => Some(server_tools::model_name(kind).into()),
            Self::Mcp(_) => None,
        }
    }

    /// Returns the echo in the response.
    pub fn echo(&self) -> Value {
        match self {
            Self::Function(it) => json!({
                "type": "function", "name": it.name, "description": it.description,
                "parameters": it.parameters, "strict": it.strict,
            }),
            Self::Custom(it) => json!({
                "type": "custom", "name": it.name, "description": it.description,
                "format": it.format,
            }),
            Self::LocalShell => json!({ "type": "local_shell" }),
            Self::Builtin(kind) => json!({ "type": kind }),
            Self::Mcp(server) => server.echo(),
        }
    }
}

impl FunctionTool {
    /// Reads the object that contains the name and the parameters.
    pub(in crate::request) fn read(tool: &ObjectReader) -> Option<Self> {
        let known = ["type", "name", "description", "parameters", "strict"];
        require_known_fields(tool, &known);
        let name = name(tool);
        let description = tool.text("description").map(str::to_owned);
        let parameters = tool.object("parameters");
        Some(Self {
            name: name?,
            description,
            parameters: parameters.map(|it| it.fields.clone()),
            strict: tool.flag("strict"),
        })
    }
}

impl CustomTool {
    fn read(tool: &ObjectReader) -> Option<Self> {
        require_known_fields(tool, &["type", "name", "description", "format"]);
        let name = name(tool);
        let description = tool.text("description").map(str::to_owned);
        let format = tool.object("format");
        Some(Self {
            name: name?,
            description,
            format: format.map_or(CustomFormat::Text, |it| CustomFormat::read(&it)),
        })
    }
}

impl CustomFormat {
    fn read(format: &ObjectReader) -> Self {
        let require = |name: &str| format.missing(name, "A grammar requires this parameter.");
        match format.word("type") {
            Some(CustomFormatType::Text) => Self::Text,
            Some(CustomFormatType::Grammar) => Self::read_grammar(format),
            None => {
                require("type");
                Self::Text
            }
        }
    }

    /// Reads the object that contains the syntax and the definition of a grammar.
    pub(in crate::request) fn read_grammar(format: &ObjectReader) -> Self {
        let require = |name: &str| format.missing(name, "A grammar requires this parameter.");
        let Some(syntax) = format.word("syntax") else {
            require("syntax");
            return Self::Text;
        };
        let Some(definition) = format.text("definition") else {
            require("definition");
            return Self::Text;
        };
        Self::Grammar {
            syntax,
            definition: definition.to_owned(),
        }
    }
}

/// Rejects a tool of an unknown type.
pub(in crate::request) fn reject_type(tool: &ObjectReader) {
    let message = "Tools of this type are not supported.";
    tool.fail("unsupported_tool", "type", message);
}

/// Rejects a field that this type of tool does not have, unless it is `null`.
pub(in crate::request) fn require_known_fields(tool: &ObjectReader, known: &[&str]) {
    let mut given = tool.fields.keys().filter(|it| tool.get(it).is_some());
    if let Some(name) = given.find(|it| !known.contains(&it.as_str())) {
        let message = "Unknown parameter for a tool of this type.";
        tool.fail("unknown_parameter", name, message);
    }
}

/// Returns the name of a tool, which is required.
pub(in crate::request) fn name(tool: &ObjectReader) -> Option<String> {
    let Some(name) = tool.text("name") else {
        tool.missing("name", "A tool requires `name`.");
        return None;
    };
    tool.require(is_name(name), "name", NAME_RULE);
    Some(name.to_owned())
}
