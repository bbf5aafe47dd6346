//! Defines the tools of one response (what its model may call, whether it must, who runs each tool)
//! and sets them in model requests.

use std::collections::BTreeMap;

use agent::tools::mcp::policy::{ApprovalPolicy, ToolFilter};
use agent::tools::mcp::remote_server::Credentials;
use agent::tools::registry::ToolRegistry;
use llm::request::Request;
use llm::tool::{Tool, ToolChoice};
use responses_api::request::error::WrongReference;
use responses_api::server_tools;
use serde::{Deserialize, Serialize};

use crate::responses::error::ResponseEngineError;

/// The name of the memory tool, which belongs to a speaker.
pub const MEMORY_TOOL: &str = "memory";

/// The tools that a request declares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolConfig {
    pub tools: Vec<DeclaredTool>,
    /// Applies to the first iteration only; afterwards the model is free to answer.
    pub choice: ToolChoice,
    /// Allowed tools, by the names that the model sees; `None` allows all.
    pub allowed: Option<Vec<String>>,
    /// Labels of MCP servers whose tools are all allowed as well.
    pub allowed_servers: Vec<String>,
    /// In the first iteration, a tool of this server must be called.
    pub must_use: Option<String>,
    /// Only the first call of an iteration counts.
    pub is_serial: bool,
    /// MCP servers, whose tools are loaded before the first model call.
    pub servers: Vec<DeclaredServer>,
    /// Their credentials, which are stored separately and encrypted.
    #[serde(skip)]
    pub credentials: ServerCredentials,
    /// Their tools, by the names that the model sees; loaded for each response.
    #[serde(skip)]
    pub server_tools: BTreeMap<String, ServerToolRef>,
    /// The domains to which the results of a web search are limited; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub search_domains: Vec<String>,
    /// The limit over all iterations; `None` means no limit by the request.
    pub max_calls: Option<u32>,
    /// Calls that this server has run before this task, and that count towards its limit.
    #[serde(skip)]
    pub n_earlier_server_calls: u32,
}

/// A tool and who runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclaredTool {
    pub kind: ToolKind,
    /// The client's names of a function in a namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaced: Option<NamespacedFunction>,
    /// The definition that the model sees.
    pub tool: Tool,
}

/// A function as the client names it, with its namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespacedFunction {
    pub namespace: String,
    pub name: String,
}

/// The kind of a declared tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Run by the client, with JSON arguments.
    Function,
    /// Run by the client, with one text argument.
    Custom,
    /// A command for the client's shell; never run on this server.
    Shell,
    /// Run by this server.
    Server,
    /// Run by an MCP server that we call.
    Remote,
}

/// A server as declared and stored, without its credentials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclaredServer {
    pub label: String,
    pub url: String,
    /// `None` allows all of its tools.
    pub allowed: Option<ToolFilter>,
    pub approval: ApprovalPolicy,
}

/// The credentials of a request's servers, keyed by label.
pub type ServerCredentials = BTreeMap<String, Credentials>;

/// A tool of a server that the response may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerToolRef {
    pub label: String,
    /// The name that its server uses.
    pub name: String,
    /// The user must approve each call.
    pub needs_approval: bool,
}

impl ToolConfig {
    /// Checks that all declared server-side tools exist. Only the speakers of a space have the
    /// memory tool.
    ///
    /// # Errors
    /// Returns `UnknownTool` with the first one that does not.
    pub fn require_tools(
        &self,
        registry: &ToolRegistry,
        has_memory: bool,
    ) -> Result<(), ResponseEngineError> {
        let is_missing = |it: &DeclaredTool| {
            let is_there = match server_tools::called_tool(&it.tool.name) {
                MEMORY_TOOL => has_memory,
                name => registry.find(name).is_some(),
            };
            it.kind == ToolKind::Server && !is_there
        };
        let Some(at) = self.tools.iter().position(is_missing) else {
            return Ok(());
        };
        let name = server_tools::called_tool(&self.tools[at].tool.name);
        Err(ResponseEngineError::UnknownTool(WrongReference {
            param: format!("tools[{at}].type"),
            value: server_tools::item_type(name),
        }))
    }

    /// Returns whether the memory tool is declared.
    pub fn declares_memory(&self) -> bool {
        let is_memory = |it: &DeclaredTool| {
            it.kind == ToolKind::Server && server_tools::called_tool(&it.tool.name) == MEMORY_TOOL
        };
        self.tools.iter().any(is_memory)
    }

    /// Returns the tool of this name, if it may be called.
    pub fn find(&self, name: &str) -> Option<&DeclaredTool> {
        let is_disabled = self.choice == ToolChoice::None;
        let found = self.tools.iter().find(|it| it.tool.name == name);
        found.filter(|_| !is_disabled && self.allows(name))
    }

    fn allows(&self, name: &str) -> bool {
        let allowed = self.allowed.as_ref();
        let of_these = |it: &String| self.belongs_to_server(name, it);
        allowed.is_none_or(|it| it.iter().any(|allowed| allowed == name))
            || self.allowed_servers.iter().any(of_these)
    }

    fn belongs_to_server(&self, name: &str, label: &str) -> bool {
        let tool = self.server_tools.get(name);
        tool.is_some_and(|it| it.label == label)
    }

    /// Sets the tools and the tool choice of a model request.
    pub fn apply_to_request(&self, request: &mut Request) {
        self.clear_tool_choice(request);
        request.tool_choice = self.choice.clone();
        if let Some(label) = &self.must_use {
            request
                .tools
                .retain(|it| self.belongs_to_server(&it.name, label));
        }
        let is_declared = match &request.tool_choice {
            ToolChoice::Named(name) => request.tools.iter().any(|it| it.name == *name),
            _ => !request.tools.is_empty(),
        };
        // A model cannot be required to call a missing tool. Validation rejects such requests, but
        // the tools of MCP servers are only known here.
        if !is_declared {
            self.clear_tool_choice(request);
        }
    }

    /// Sets the allowed tools of a model request and makes calling them optional, unless the
    /// request forbids tools.
    pub fn clear_tool_choice(&self, request: &mut Request) {
        let allowed = self.tools.iter().filter(|it| self.allows(&it.tool.name));
        request.tools = allowed.map(|it| it.tool.clone()).collect();
        request.tool_choice = match self.choice {
            ToolChoice::None => ToolChoice::None,
            _ => ToolChoice::Auto,
        };
        request.is_serial = self.is_serial;
    }
}
