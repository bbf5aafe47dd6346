//! Parses and validates the tools that a request declares, and returns them as the response repeats
//! them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::request::error;
use crate::request::object_reader::ObjectReader;
use crate::request::server_rules::ServerRules;
use crate::request::tools::mcp_server::McpServerTool;
use crate::request::tools::tool_names::{NAME_RULE, SHELL_TOOL_NAME, is_name};
use crate::request::tools::web_search::WebSearch;
use crate::request::tools::{tool_names, web_search};
use crate::server_tools;

/// The maximum number of tools in one request.
pub(in crate::request) const MAX_TOOLS: usize = 128;

/// The field that lets a model load the declaration of a function later. It has no effect on this server.
pub(in crate::request) const DEFER_LOADING: &str = "defer_loading";

/// The maximum number of MCP servers in one request.
const MAX_SERVERS: usize = 16;
/// The supported types of tools, as an error names them.
const SUPPORTED_TYPES: &str = "function, custom, local_shell, mcp, namespace, troupe:*";

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
    /// Functions of the client under a common name.
    Namespace(NamespaceTool),
    /// A web search by this server.
    WebSearch(WebSearch),
    /// The declaration of a tool that other services run and this server does not. The response repeats it.
    Hosted(Map<String, Value>),
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

/// Functions of the client under a common name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamespaceTool {
    pub name: String,
    pub description: Option<String>,
    pub functions: Vec<FunctionTool>,
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
            let names = tool.model_names();
            let earlier: Vec<String> = tools.iter().flat_map(RequestTool::model_names).collect();
            let is_new = names.iter().all(|it| !earlier.contains(it));
            fields.require(is_new, "name", "unique in the request");
            let n_tools = earlier.len() + names.len();
            body.require(n_tools <= MAX_TOOLS, "tools", "at most 128 tools");
        }
        tools.push(tool);
    }
    tools
}

/// Returns whether a tool of this type is accepted though this server does not run it.
pub(in crate::request) fn is_hosted(kind: &str) -> bool {
    let is_named = ["file_search", "code_interpreter", "image_generation"].contains(&kind);
    let has_versions = kind.starts_with("web_search") || kind.starts_with("computer");
    is_named || (has_versions && is_name(kind))
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
            Some("namespace") => NamespaceTool::read(tool).map(Self::Namespace),
            Some(kind) if rules.has_web_search && web_search::is_type(kind) => {
                Some(Self::WebSearch(WebSearch::read(tool)))
            }
            Some(kind) if is_hosted(kind) => Some(Self::Hosted(tool.fields.clone())),
            Some(kind) => match server_tools::tool_name(kind) {
                Some(name) if (rules.is_builtin_tool)(name) => {
                    require_known_fields(tool, &["type"]);
                    Some(Self::Builtin(kind.to_owned()))
                }
                _ => {
                    reject_type(tool, kind, SUPPORTED_TYPES);
                    None
                }
            },
            None => {
                tool.missing("type", "A tool requires `type`.");
                None
            }
        }
    }

    /// Returns the names for the model. The tools of an MCP server are not known yet.
    pub(in crate::request) fn model_names(&self) -> Vec<String> {
        match self {
            Self::Function(it) => vec![it.name.clone()],
            Self::Custom(it) => vec![it.name.clone()],
            Self::LocalShell => vec![SHELL_TOOL_NAME.to_owned()],
            Self::Builtin(kind) => vec![server_tools::model_name(kind)],
            Self::Namespace(it) => it.model_names(),
            // A second declaration of the web search has no effect.
            Self::Mcp(_) | Self::WebSearch(_) | Self::Hosted(_) => Vec::new(),
        }
    }

    /// Returns the echo in the response.
    pub fn echo(&self) -> Value {
        match self {
            Self::Function(it) => it.echo(),
            Self::Custom(it) => json!({
                "type": "custom", "name": it.name, "description": it.description,
                "format": it.format,
            }),
            Self::LocalShell => json!({ "type": "local_shell" }),
            Self::Builtin(kind) => json!({ "type": kind }),
            Self::Mcp(server) => server.echo(),
            Self::Namespace(it) => json!({
                "type": "namespace", "name": it.name, "description": it.description,
                "tools": it.functions.iter().map(FunctionTool::echo).collect::<Vec<_>>(),
            }),
            Self::WebSearch(WebSearch { fields, .. }) | Self::Hosted(fields) => {
                Value::Object(fields.clone())
            }
        }
    }
}

impl NamespaceTool {
    fn read(tool: &ObjectReader) -> Option<Self> {
        require_known_fields(tool, &["type", "name", "description", "tools"]);
        let name = name(tool);
        let description = tool.text("description").map(str::to_owned);
        if tool.get("tools").is_none() {
            tool.missing("tools", "A namespace requires `tools`.");
        }
        let read = |function: &ObjectReader| match function.text("type") {
            Some("function") => FunctionTool::read(function),
            Some(kind) => {
                let message = format!(
                    "Unsupported tool type {} at {} in a namespace; supported: function.",
                    error::quoted(kind),
                    function.path(),
                );
                function.fail("unsupported_tool", "type", message);
                None
            }
            None => {
                function.missing("type", "A tool requires `type`.");
                None
            }
        };
        if tool.list("tools").is_some_and(|it| it.len() > MAX_TOOLS) {
            tool.wrong_value("tools", "at most 128 tools");
            return None;
        }
        let mut functions: Vec<FunctionTool> = Vec::new();
        for fields in tool.objects("tools") {
            let Some(function) = read(&fields) else {
                continue;
            };
            let is_new = functions.iter().all(|it| it.name != function.name);
            fields.require(is_new, "name", "unique in its namespace");
            let full = name
                .as_deref()
                .map(|it| tool_names::with_namespace(it, &function.name));
            let expected = "at most 64 characters together with its namespace and `__`";
            fields.require(full.is_none_or(|it| is_name(&it)), "name", expected);
            functions.push(function);
        }
        Some(Self {
            name: name?,
            description,
            functions,
        })
    }

    fn model_names(&self) -> Vec<String> {
        let functions = self.functions.iter();
        functions
            .map(|it| tool_names::with_namespace(&self.name, &it.name))
            .collect()
    }
}

impl FunctionTool {
    /// Reads the object that contains the name and the parameters.
    pub(in crate::request) fn read(tool: &ObjectReader) -> Option<Self> {
        let known = [
            "type",
            "name",
            "description",
            "parameters",
            "strict",
            DEFER_LOADING,
        ];
        require_known_fields(tool, &known);
        tool.flag(DEFER_LOADING);
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

    fn echo(&self) -> Value {
        json!({
            "type": "function", "name": self.name, "description": self.description,
            "parameters": self.parameters, "strict": self.strict,
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
pub(in crate::request) fn reject_type(tool: &ObjectReader, kind: &str, supported: &str) {
    let message = format!(
        "Unsupported tool type {} at {}; supported: {supported}.",
        error::quoted(kind),
        tool.path(),
    );
    tool.fail("unsupported_tool", "type", message);
}

/// Rejects a field that this type of tool does not have, unless it is `null`.
pub(in crate::request) fn require_known_fields(tool: &ObjectReader, known: &[&str]) {
    let mut given = tool.fields.keys().filter(|it| tool.get(it).is_some());
    if let Some(name) = given.find(|it| !known.contains(&it.as_str())) {
        tool.unknown(name);
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
