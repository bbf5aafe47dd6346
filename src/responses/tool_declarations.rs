//! Converts the validated tools and tool choice of a request to a `ToolConfig`: how the model sees
//! each tool, who runs it, and which MCP servers must be asked for their tools. Also defines which
//! tools and headers a request may contain. No I/O.

use agent::tools::builtin::web_search;
use agent::tools::mcp::policy::{ApprovalPolicy, ToolFilter};
use agent::tools::mcp::remote_server;
use agent::tools::mcp::remote_server::Credentials;
use agent::tools::mcp::tool_names::model_facing_name;
use agent::tools::registry;
use llm::tool::{Tool, ToolChoice};
use responses_api::request::server_rules::ServerRules;
use responses_api::request::tools::mcp_server::{
    McpCredentials, McpServerTool, RequireApproval, ToolConditions,
};
use responses_api::request::tools::tool::{
    CustomFormat, CustomTool, FunctionTool, GrammarSyntax, NamespaceTool, RequestTool,
};
use responses_api::request::tools::tool_choice::{ChoiceMode, RequestedChoice, ToolReference};
use responses_api::request::tools::tool_names;
use responses_api::request::tools::tool_names::SHELL_TOOL_NAME;
use responses_api::request::tools::web_search::WebSearch;
use responses_api::server_tools;
use serde_json::{Value, json};

use crate::responses::execution::tool_config::{
    DeclaredServer, DeclaredTool, NamespacedFunction, ToolConfig, ToolKind,
};

/// What a request may contain on a server that cannot search the web.
pub const SERVER_RULES: ServerRules = ServerRules {
    is_builtin_tool: |name| registry::declaration(name).is_some(),
    is_allowed_header: remote_server::is_allowed_header,
    has_web_search: false,
};

/// Returns the tools of a request.
pub fn tool_config(tools: Vec<RequestTool>, choice: RequestedChoice) -> ToolConfig {
    let mut config = ToolConfig::default();
    for tool in tools {
        match tool {
            RequestTool::Function(tool) => config.tools.push(function(tool)),
            RequestTool::Custom(tool) => config.tools.push(custom(tool)),
            RequestTool::LocalShell => config.tools.push(shell()),
            RequestTool::Builtin(kind) => config.tools.extend(builtin(&kind)),
            RequestTool::Mcp(server) => declare_server(*server, &mut config),
            RequestTool::Namespace(tool) => config.tools.extend(namespace(tool)),
            RequestTool::WebSearch(search) => declare_search(search, &mut config),
            // The model must not call a tool that no one runs.
            RequestTool::Hosted(_) => {}
        }
    }
    choose(choice, &mut config);
    config
}

fn function(tool: FunctionTool) -> DeclaredTool {
    let parameters = tool.parameters.map(Value::Object);
    let no_parameters = || json!({ "type": "object", "properties": {} });
    DeclaredTool {
        kind: ToolKind::Function,
        namespaced: None,
        tool: Tool {
            name: tool.name,
            description: tool.description,
            parameters: parameters.unwrap_or_else(no_parameters),
            strict: tool.strict,
        },
    }
}

/// Returns the functions of a namespace, whose description is added to each of them.
fn namespace(tool: NamespaceTool) -> Vec<DeclaredTool> {
    let common = tool.description.filter(|it| !it.is_empty());
    let declare = |it: FunctionTool| {
        let name = it.name.clone();
        let mut declared = function(it);
        declared.tool.name = tool_names::with_namespace(&tool.name, &name);
        let own = declared.tool.description.take().filter(|it| !it.is_empty());
        let parts: Vec<String> = common.clone().into_iter().chain(own).collect();
        declared.tool.description = (!parts.is_empty()).then(|| parts.join("\n\n"));
        declared.namespaced = Some(NamespacedFunction {
            namespace: tool.name.clone(),
            name,
        });
        declared
    };
    tool.functions.into_iter().map(declare).collect()
}

fn custom(tool: CustomTool) -> DeclaredTool {
    let grammar = match tool.format {
        CustomFormat::Text => None,
        CustomFormat::Grammar { syntax, definition } => {
            let syntax = match syntax {
                GrammarSyntax::Lark => "lark",
                GrammarSyntax::Regex => "regex",
            };
            Some(format!(
                "`input` must match this {syntax} grammar:\n{definition}"
            ))
        }
    };
    let description = tool.description.filter(|it| !it.is_empty());
    let parts: Vec<String> = description.into_iter().chain(grammar).collect();
    DeclaredTool {
        kind: ToolKind::Custom,
        namespaced: None,
        tool: Tool {
            name: tool.name,
            description: (!parts.is_empty()).then(|| parts.join("\n\n")),
            parameters: json!({
                "type": "object",
                "properties": { "input": { "type": "string" } },
                "required": ["input"],
                "additionalProperties": false,
            }),
            strict: None,
        },
    }
}

fn shell() -> DeclaredTool {
    let text = json!({ "type": "string" });
    DeclaredTool {
        kind: ToolKind::Shell,
        namespaced: None,
        tool: Tool {
            name: SHELL_TOOL_NAME.to_owned(),
            description: Some("Runs a command in the user's shell.".to_owned()),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": {
                        "type": "array", "items": text,
                        "description": "The program and its arguments.",
                    },
                    "env": { "type": "object", "additionalProperties": text },
                    "working_directory": text,
                    "timeout_ms": { "type": "integer" },
                    "user": text,
                },
                "required": ["command"],
            }),
            strict: None,
        },
    }
}

/// Returns a tool of this server; parsing has rejected unknown ones.
fn builtin(kind: &str) -> Option<DeclaredTool> {
    let tool = registry::declaration(server_tools::tool_name(kind)?)?;
    Some(DeclaredTool {
        kind: ToolKind::Server,
        namespaced: None,
        tool,
    })
}

/// Declares the web search. If there are several declarations, the first one applies.
fn declare_search(search: WebSearch, config: &mut ToolConfig) {
    let tool = web_search::declaration();
    if config.tools.iter().all(|it| it.tool.name != tool.name) {
        config.search_domains = search.allowed_domains;
        config.tools.push(DeclaredTool {
            kind: ToolKind::Server,
            namespaced: None,
            tool,
        });
    }
}

fn declare_server(server: McpServerTool, config: &mut ToolConfig) {
    let McpCredentials {
        query,
        authorization,
        headers,
    } = server.credentials;
    let credentials = Credentials {
        query,
        authorization,
        headers,
    };
    config.credentials.insert(server.label.clone(), credentials);
    config.servers.push(DeclaredServer {
        label: server.label,
        url: server.url,
        allowed: server.allowed.map(filter),
        approval: match server.approval {
            RequireApproval::Always => ApprovalPolicy::Always,
            RequireApproval::Never => ApprovalPolicy::Never,
            RequireApproval::Filtered { always, never } => ApprovalPolicy::Some {
                always: filter(always),
                never: filter(never),
            },
        },
    });
}

fn filter(conditions: ToolConditions) -> ToolFilter {
    ToolFilter {
        tool_names: conditions.tool_names,
        read_only: conditions.read_only,
    }
}

fn choose(choice: RequestedChoice, config: &mut ToolConfig) {
    config.choice = match choice {
        RequestedChoice::Mode(mode) => mode_choice(mode),
        RequestedChoice::Tool(tool) => match called_tools(tool) {
            CalledTools::One(name) => ToolChoice::Named(name),
            CalledTools::OfServer(label) => {
                config.must_use = Some(label);
                ToolChoice::Required
            }
            CalledTools::None => ToolChoice::Auto,
        },
        RequestedChoice::Allowed { mode, tools } => {
            let mut names = Vec::new();
            for tool in tools {
                match called_tools(tool) {
                    CalledTools::One(name) => names.push(name),
                    CalledTools::OfServer(label) => config.allowed_servers.push(label),
                    CalledTools::None => {}
                }
            }
            config.allowed = Some(names);
            mode_choice(mode)
        }
    };
}

fn mode_choice(mode: ChoiceMode) -> ToolChoice {
    match mode {
        ChoiceMode::Auto => ToolChoice::Auto,
        ChoiceMode::None => ToolChoice::None,
        ChoiceMode::Required => ToolChoice::Required,
    }
}

/// The tools to which a reference refers.
enum CalledTools {
    /// The name of a tool for the model.
    One(String),
    /// The label of an MCP server, for all of its tools.
    OfServer(String),
    /// A tool that is not offered to the model.
    None,
}

fn called_tools(tool: ToolReference) -> CalledTools {
    match tool {
        ToolReference::Function {
            name,
            namespace: Some(namespace),
        } => CalledTools::One(tool_names::with_namespace(&namespace, &name)),
        ToolReference::Function { name, .. } | ToolReference::Custom { name } => {
            CalledTools::One(name)
        }
        ToolReference::LocalShell => CalledTools::One(SHELL_TOOL_NAME.to_owned()),
        ToolReference::Builtin { kind } => CalledTools::One(server_tools::model_name(&kind)),
        ToolReference::Server { server_label, name } => match name {
            Some(name) => CalledTools::One(model_facing_name(&server_label, &name)),
            None => CalledTools::OfServer(server_label),
        },
        ToolReference::WebSearch { .. } => CalledTools::One(web_search::declaration().name),
        ToolReference::Hosted { .. } => CalledTools::None,
    }
}

#[cfg(test)]
#[path = "tool_declarations_tests.rs"]
mod tests;
