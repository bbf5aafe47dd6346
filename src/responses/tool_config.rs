//! The tools of one response: what its model may call, whether it must, and who runs it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::llm::request::Request;
use crate::llm::tool::{Tool, ToolChoice};
use crate::responses::mcp;
use crate::responses::mcp::{ServerCredentials, ServerToolRef};

/// What a request declares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolConfig {
    pub tools: Vec<DeclaredTool>,
    /// Of the first round only: a model that was forced once is free afterwards.
    pub choice: ToolChoice,
    /// By the names that the model sees; `None`: all.
    pub allowed: Option<Vec<String>>,
    /// Labels of servers of whose tools all are allowed, too.
    pub allowed_servers: Vec<String>,
    /// In the first round, one of the tools of this server must be called.
    pub must_use: Option<String>,
    /// Only the first call of a round counts.
    pub is_serial: bool,
    /// Servers elsewhere, whose tools a turn learns of before its first round.
    pub servers: Vec<mcp::DeclaredServer>,
    /// What opens them; never stored with the others.
    #[serde(skip)]
    pub credentials: ServerCredentials,
    /// Their tools, by the names that the model sees; of one turn.
    #[serde(skip)]
    pub server_tools: BTreeMap<String, ServerToolRef>,
    /// Over all rounds; `None`: as many as a turn has.
    pub max_calls: Option<u32>,
}

/// A tool, and how it is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclaredTool {
    pub kind: ToolKind,
    /// As the model is told of it.
    pub tool: Tool,
}

/// What a tool is to the one who declared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Run by the client, with arguments.
    Function,
    /// Run by the client, with one text.
    Custom,
    /// A command for the client's shell; never run here.
    Shell,
    /// Run by us.
    Server,
    /// Run by a server elsewhere, which we ask.
    Remote,
}

impl ToolConfig {
    /// The tool of this name, if it may be called at all.
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

    /// Tells a model of what it may call, and what it must.
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
        // Nobody can be made to take what is not there; what is there is known at the door, but for
        // servers elsewhere.
        if !is_declared {
            self.clear_tool_choice(request);
        }
    }

    /// Tells a model of what it may call, and that it need not; or may not, where it may nothing.
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
