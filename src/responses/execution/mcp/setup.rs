//! Prepares the MCP servers of a response before the first model call: loads their tools and runs
//! approved calls.

use std::sync::Arc;

use agent::permits::fair_permits::PermitOwner;
use agent::tools::executor::ToolJob;
use agent::tools::mcp::message::McpError;
use agent::tools::mcp::sessions::RemoteTool;
use agent::tools::mcp::tool_info::McpTool;
use agent::tools::mcp::tool_names::model_facing_name;
use agent::tools::tool::{ServerTool, ToolArguments, ToolResult};
use agent::tools::tool_messages;
use agent::tools::tool_runtime::ToolRuntime;
use futures::future::join_all;
use leased_jobs::lease::CancelHandle;
use llm::request::Request;
use llm::tool::{Tool, ToolCall};
use responses_api::fold::engine_event::{Completeness, EngineEvent};
use responses_api::item::{ItemBody, McpCall, McpListTools};
use responses_api::status::ItemStatus;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::responses::execution::event_queue::EventQueue;
use crate::responses::execution::mcp::approvals::ApprovedCall;
use crate::responses::execution::mcp::plan::{McpPlan, McpServers};
use crate::responses::execution::tool_config;
use crate::responses::execution::tool_config::{ServerToolRef, ToolConfig, ToolKind};

/// The limit for all servers together, because model APIs accept no more tools.
const MAX_TOOLS: usize = 128;

/// The parts of a response task that the setup changes.
pub struct McpContext<'a> {
    /// The first model request.
    pub request: &'a mut Request,
    pub tools: &'a mut ToolConfig,
    pub tool_runtime: &'a mut ToolRuntime,
    pub owner: PermitOwner,
    pub queue: &'a EventQueue,
}

/// Executes the plan until it is done, canceled or past the deadline; the response loop checks the
/// latter two again.
pub async fn execute_plan(
    plan: McpPlan,
    mut context: McpContext<'_>,
    (stop, deadline): (&CancelHandle, Instant),
) {
    let McpPlan { servers, approved } = plan;
    let calling = async {
        if let Some(servers) = &servers {
            context.load_tools(servers).await;
        }
        context.run_approved(approved).await;
    };
    tokio::select! {
        () = stop.token.cancelled() => {}
        _ = timeout_at(deadline, calling) => {}
    }
}

impl McpContext<'_> {
    /// Loads the tool lists and emits those that were fetched.
    async fn load_tools(&mut self, servers: &McpServers) {
        let declared = self.tools.servers.clone();
        let asking = declared
            .iter()
            .map(|it| self.list_tools(servers, &it.label));
        let lists = join_all(asking).await;
        for (server, (list, is_new)) in declared.iter().zip(lists) {
            if is_new {
                let item = list_item(&server.label, &list);
                self.queue
                    .push(EngineEvent::ClientToolCall(item, Completeness::Complete));
            }
            for listed in list.unwrap_or_default() {
                let is_allowed = server.allowed.as_ref().is_none_or(|it| it.allows(&listed));
                if is_allowed && self.tools.tools.len() < MAX_TOOLS {
                    let needs_approval = server.approval.requires_approval(&listed);
                    self.register_tool(servers, &server.label, &listed, needs_approval);
                }
            }
        }
        self.tools.apply_to_request(self.request);
    }

    /// Returns the tools of a server, and whether they were fetched now.
    async fn list_tools(
        &self,
        servers: &McpServers,
        label: &str,
    ) -> (Result<Vec<McpTool>, McpError>, bool) {
        if let Some(known) = servers.known_tools.get(label) {
            return (Ok(known.clone()), false);
        }
        let asked = match servers.sessions.find_server(label) {
            Some(server) => servers.tool_cache.tools_of(servers.owner, server).await,
            None => Err(McpError::Unreachable),
        };
        (asked.map(|it| it.to_vec()), true)
    }

    /// Registers one tool so that the model can call it.
    fn register_tool(
        &mut self,
        servers: &McpServers,
        label: &str,
        listed: &McpTool,
        needs_approval: bool,
    ) {
        let name = model_facing_name(label, &listed.name);
        if self.tools.tools.iter().any(|it| it.tool.name == name) {
            return;
        }
        let tool = Tool {
            name: name.clone(),
            description: listed.description.clone(),
            parameters: listed.input_schema.clone(),
            strict: None,
        };
        let runner = RemoteTool {
            sessions: servers.sessions.clone(),
            label: label.to_owned(),
            name: listed.name.clone(),
            declaration: tool.clone(),
        };
        let registry = &mut self.tool_runtime.registry;
        *registry = registry.with(&name, Arc::new(runner));
        self.tools.tools.push(tool_config::DeclaredTool {
            kind: ToolKind::Remote,
            namespaced: None,
            tool,
        });
        let remote = ServerToolRef {
            label: label.to_owned(),
            name: listed.name.clone(),
            needs_approval,
        };
        self.tools.server_tools.insert(name, remote);
    }

    /// Runs the approved calls and adds their results to the model request.
    async fn run_approved(&mut self, approved: Vec<ApprovedCall>) {
        if approved.is_empty() {
            return;
        }
        let receipts: Vec<ItemBody> = approved.iter().map(call_item).collect();
        let jobs = approved.iter().map(|it| self.tool_job(it)).collect();
        // A call that must run only once is stored before it runs.
        self.queue.push(EngineEvent::NextIteration);
        self.queue.flush().await;
        let show = |at: usize, update| self.queue.push_tool_update(&receipts[at], update);
        let executor = &self.tool_runtime.executor;
        let outcomes = executor.run(self.owner, jobs, show).await;
        self.queue.flush().await;
        let calls: Vec<ToolCall> = approved.iter().map(tool_call).collect();
        let messages = &mut self.request.messages;
        messages.push(tool_messages::assistant_message("", calls.clone()));
        for (call, outcome) in calls.iter().zip(outcomes) {
            messages.push(tool_messages::tool_message(
                call,
                tool_messages::result_text(&outcome),
            ));
        }
    }

    fn tool_job(&self, approved: &ApprovedCall) -> ToolJob {
        let name = model_facing_name(&approved.label, &approved.name);
        let found = self.tool_runtime.registry.find(&name).cloned();
        let arguments = serde_json::from_str(&approved.arguments).unwrap_or_default();
        let missing = || Arc::new(MissingTool) as Arc<dyn ServerTool>;
        let is_open = self.tools.server_tools.contains_key(&name);
        ToolJob {
            tool: found.filter(|_| is_open).unwrap_or_else(missing),
            arguments,
        }
    }
}

/// Replaces a tool that does not exist.
struct MissingTool;

#[async_trait::async_trait]
impl ServerTool for MissingTool {
    fn declaration(&self) -> Tool {
        Tool {
            name: String::new(),
            description: None,
            parameters: json!({}),
            strict: None,
        }
    }

    async fn run(&self, _: &ToolArguments, _: &(dyn Fn(&str) + Sync)) -> ToolResult {
        Err("This tool is not declared, or its server does not answer.".to_owned())
    }
}

fn list_item(label: &str, list: &Result<Vec<McpTool>, McpError>) -> ItemBody {
    let tools = list.iter().flatten().map(McpTool::view);
    ItemBody::McpListTools(McpListTools {
        status: ItemStatus::InProgress,
        server_label: label.to_owned(),
        tools: tools.collect(),
        error: list.as_ref().err().map(McpError::to_string),
    })
}

fn call_item(approved: &ApprovedCall) -> ItemBody {
    ItemBody::McpCall(McpCall {
        status: ItemStatus::InProgress,
        server_label: approved.label.clone(),
        name: approved.name.clone(),
        arguments: approved.arguments.clone(),
        approval_request_id: Some(approved.request_id.clone()),
        output: None,
        error: None,
    })
}

fn tool_call(approved: &ApprovedCall) -> ToolCall {
    ToolCall {
        id: approved.request_id.clone(),
        name: model_facing_name(&approved.label, &approved.name),
        arguments: approved.arguments.clone(),
    }
}
