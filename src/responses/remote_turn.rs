//! What a turn does with servers of tools before its model is asked: it learns what they have, and
//! runs what somebody agreed to.

use crate::llm::request::Request;
use crate::llm::tool::Tool;
use crate::llm::tool::ToolCall;
use crate::responses::approvals::Approved;
use crate::responses::happening::Cut;
use crate::responses::happening::Happening;
use crate::responses::inbox::Inbox;
use crate::responses::remote::Errand;
use crate::responses::remote::Front;
use crate::responses::remote::Remote;
use crate::responses::stop::Stop;
use crate::responses::toolbox;
use crate::responses::toolbox::Kind;
use crate::responses::toolbox::Toolbox;
use crate::tools::executor::ToolJob;
use crate::tools::mcp::message::McpError;
use crate::tools::mcp::sessions::RemoteTool;
use crate::tools::mcp::tool_info::McpTool;
use crate::tools::mcp::tool_names::model_facing_name;
use crate::tools::ordered_output::ToolUpdate;
use crate::tools::tool::ServerTool;
use crate::tools::tool::ToolArguments;
use crate::tools::tool::ToolResult;
use crate::tools::tool_messages;
use crate::tools::tool_runtime::ToolRuntime;
use futures::future::join_all;
use serde_json::Value;
use serde_json::json;
use std::sync::Arc;
use tokio::time::Instant;
use tokio::time::timeout_at;

/// Of all servers of a turn together: APIs take no more.
const MAX_TOOLS: usize = 128;

/// What a turn works with.
pub struct Bench<'a> {
    /// The first call of its model.
    pub request: &'a mut Request,
    pub toolbox: &'a mut Toolbox,
    pub workshop: &'a mut ToolRuntime,
    pub inbox: &'a Inbox,
}

/// Does what is to be done with servers, until somebody asks to stop or it is too late; the rounds see
/// that, too.
pub async fn call_on_servers(
    errand: Errand,
    mut bench: Bench<'_>,
    (stop, until): (&Stop, Instant),
) {
    let Errand { desk, approved } = errand;
    let calling = async {
        if let Some(front) = &desk {
            bench.learn(front).await;
        }
        bench.run_approved(approved).await;
    };
    tokio::select! {
        () = stop.token.cancelled() => {}
        _ = timeout_at(until, calling) => {}
    }
}

impl Bench<'_> {
    /// Learns which tools there are, and tells of what was asked for.
    async fn learn(&mut self, front: &Front) {
        let declared = self.toolbox.servers.clone();
        let asking = declared.iter().map(|it| self.ask_server(front, &it.label));
        let lists = join_all(asking).await;
        for (server, (list, is_new)) in declared.iter().zip(lists) {
            if is_new {
                let item = list_item(&server.label, &list);
                self.inbox.put(Happening::Called(item, Cut::Whole));
            }
            for listed in list.unwrap_or_default() {
                let is_allowed = server.allowed.as_ref().is_none_or(|it| it.allows(&listed));
                if is_allowed && self.toolbox.tools.len() < MAX_TOOLS {
                    let needs_approval = server.approval.requires_approval(&listed);
                    self.lay_out(front, &server.label, &listed, needs_approval);
                }
            }
        }
        self.toolbox.lay_out(self.request);
    }

    /// The tools of a server, and whether it was asked just now.
    async fn ask_server(
        &self,
        front: &Front,
        label: &str,
    ) -> (Result<Vec<McpTool>, McpError>, bool) {
        if let Some(known) = front.known.get(label) {
            return (Ok(known.clone()), false);
        }
        let asked = match front.sessions.find_server(label) {
            Some(server) => front.lists.tools_of(front.owner, server).await,
            None => Err(McpError::Unreachable),
        };
        (asked.map(|it| it.to_vec()), true)
    }

    /// Lays out one tool, so that it can be called.
    fn lay_out(&mut self, front: &Front, label: &str, listed: &McpTool, needs_approval: bool) {
        let name = model_facing_name(label, &listed.name);
        if self.toolbox.tools.iter().any(|it| it.tool.name == name) {
            return;
        }
        let tool = Tool {
            name: name.clone(),
            description: listed.description.clone(),
            parameters: listed.input_schema.clone(),
            strict: None,
        };
        let runner = RemoteTool {
            sessions: front.sessions.clone(),
            label: label.to_owned(),
            name: listed.name.clone(),
            declaration: tool.clone(),
        };
        let registry = &mut self.workshop.registry;
        *registry = registry.with(&name, Arc::new(runner));
        let kind = Kind::Remote;
        self.toolbox.tools.push(toolbox::Declared { kind, tool });
        let remote = Remote {
            label: label.to_owned(),
            name: listed.name.clone(),
            needs_approval,
        };
        self.toolbox.remotes.insert(name, remote);
    }

    /// Runs what somebody agreed to, and tells the model what came of it.
    async fn run_approved(&mut self, approved: Vec<Approved>) {
        if approved.is_empty() {
            return;
        }
        let receipts: Vec<Value> = approved.iter().map(receipt).collect();
        let jobs = approved.iter().map(|it| self.job(it)).collect();
        // What is run once is written down before it runs.
        self.inbox.put(Happening::AskedAgain);
        self.inbox.settled().await;
        let show = |at: usize, told: ToolUpdate| {
            self.inbox.put(match told {
                ToolUpdate::Started => Happening::ToolBegan(receipts[at].clone()),
                ToolUpdate::Progress(message) => Happening::ToolMoved(message),
                ToolUpdate::Finished(outcome) => Happening::ToolEnded(outcome),
            });
        };
        let outcomes = self.workshop.executor.run(jobs, show).await;
        self.inbox.settled().await;
        let calls: Vec<ToolCall> = approved.iter().map(call).collect();
        let messages = &mut self.request.messages;
        messages.push(tool_messages::assistant_message("", calls.clone()));
        for (call, outcome) in calls.iter().zip(outcomes) {
            messages.push(tool_messages::tool_message(
                call,
                tool_messages::result_text(&outcome),
            ));
        }
    }

    fn job(&self, approved: &Approved) -> ToolJob {
        let name = model_facing_name(&approved.label, &approved.name);
        let found = self.workshop.registry.find(&name).cloned();
        let arguments = serde_json::from_str(&approved.arguments).unwrap_or_default();
        let nobody = || Arc::new(Nobody) as Arc<dyn ServerTool>;
        let is_open = self.toolbox.remotes.contains_key(&name);
        ToolJob {
            tool: found.filter(|_| is_open).unwrap_or_else(nobody),
            arguments,
        }
    }
}

/// Stands for a tool that is not there.
struct Nobody;

#[async_trait::async_trait]
impl ServerTool for Nobody {
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

fn list_item(label: &str, list: &Result<Vec<McpTool>, McpError>) -> Value {
    let mut item = json!({ "type": "mcp_list_tools", "server_label": label, "tools": [] });
    match list {
        Ok(tools) => item["tools"] = tools.iter().map(McpTool::view).collect(),
        Err(error) => item["error"] = json!(error.to_string()),
    }
    item
}

fn receipt(approved: &Approved) -> Value {
    json!({
        "type": "mcp_call", "server_label": approved.label, "name": approved.name,
        "arguments": approved.arguments, "approval_request_id": approved.request,
        "output": null, "error": null,
    })
}

fn call(approved: &Approved) -> ToolCall {
    ToolCall {
        id: approved.request.clone(),
        name: model_facing_name(&approved.label, &approved.name),
        arguments: approved.arguments.clone(),
    }
}
