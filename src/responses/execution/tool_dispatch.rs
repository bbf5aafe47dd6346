//! Decides for each tool call of a model who runs it (the client, this server, or no one), within
//! the limits of calls. No I/O.

use std::collections::HashSet;

use agent::agent_host;
use agent::agent_host::DispatchedCall;
use agent::tools::builtin::web_search;
use agent::tools::parse_arguments;
use llm::tool::ToolCall;
use responses_api::item::{
    CustomToolCall, FunctionCall, ItemBody, LocalShellCall, McpApprovalRequest, McpCall,
    SearchAction, SearchStatus, ServerToolCall, ShellAction, WebSearchCall,
};
use responses_api::status::ItemStatus;
use responses_api::{object_ids, server_tools};
use serde_json::{Map, Value};

use crate::responses::execution::tool_config::{DeclaredTool, ToolConfig, ToolKind};

/// The longest call id that is accepted from a provider.
const MAX_ID_CHARS: usize = 64;

type DispatchedCalls = agent_host::DispatchedCalls<ItemBody>;
type Disposition = agent_host::Disposition<ItemBody>;

/// How many calls may still be made.
#[derive(Clone, Copy, Debug)]
pub struct CallBudget {
    /// By the client or this server.
    pub n_total: u32,
    /// By this server.
    pub n_server: u32,
}

/// Dispatches calls. `known` contains the ids of all earlier calls; the new ids are added.
pub fn dispatch(
    calls: Vec<ToolCall>,
    tools: &ToolConfig,
    known: &mut HashSet<String>,
    budget: &mut CallBudget,
) -> DispatchedCalls {
    let max_calls = if tools.is_serial { 1 } else { usize::MAX };
    let mut dispatched = DispatchedCalls {
        calls: Vec::new(),
        exceeds_budget: false,
    };
    for mut call in calls.into_iter().take(max_calls) {
        call.id = unique_call_id(call.id, known);
        let disposition = disposition_of(&call, tools);
        let counts = match disposition {
            Disposition::Client(_) => (1, 0),
            Disposition::Server(..) => (1, 1),
            Disposition::Rejected(_) => (0, 0),
        };
        if budget.n_total < counts.0 || budget.n_server < counts.1 {
            dispatched.exceeds_budget = true;
            continue;
        }
        budget.n_total -= counts.0;
        budget.n_server -= counts.1;
        dispatched.calls.push(DispatchedCall { call, disposition });
    }
    dispatched
}

/// Returns the provider's id, or a new one if that is missing, too long or already used.
fn unique_call_id(id: String, known: &mut HashSet<String>) -> String {
    let is_short = (1..=MAX_ID_CHARS).contains(&id.chars().count());
    let is_new = is_short && !id.contains('\0') && !known.contains(&id);
    let id = if is_new {
        id
    } else {
        object_ids::generate(object_ids::CALL)
    };
    known.insert(id.clone());
    id
}

fn disposition_of(call: &ToolCall, tools: &ToolConfig) -> Disposition {
    let Some(declared) = tools.find(&call.name) else {
        return Disposition::Rejected(
            "There is no tool of this name that may be called now.".to_owned(),
        );
    };
    let Some(arguments) = parse_arguments::parse(&call.arguments) else {
        return Disposition::Rejected("The arguments are no JSON object.".to_owned());
    };
    match declared.kind {
        ToolKind::Function => {
            let is_empty = call.arguments.trim().is_empty();
            let arguments = if is_empty { "{}" } else { &call.arguments };
            let id = call.id.clone();
            Disposition::Client(function_call(id, declared, arguments.to_owned()))
        }
        ToolKind::Custom => match arguments.get("input").and_then(Value::as_str) {
            Some(input) => Disposition::Client(ItemBody::CustomToolCall(CustomToolCall {
                status: ItemStatus::InProgress,
                call_id: call.id.clone(),
                name: call.name.clone(),
                input: input.to_owned(),
            })),
            None => Disposition::Rejected("The argument `input` is no text.".to_owned()),
        },
        ToolKind::Shell => match shell_action(&arguments) {
            Some(action) => Disposition::Client(ItemBody::LocalShellCall(LocalShellCall {
                status: ItemStatus::InProgress,
                call_id: call.id.clone(),
                action,
            })),
            None => Disposition::Rejected("The argument `command` is no list of texts.".to_owned()),
        },
        ToolKind::Remote => mcp_disposition(call, tools, arguments),
        ToolKind::Server => {
            let name = server_tools::called_tool(&call.name);
            if name == web_search::NAME {
                return search_disposition(arguments, tools);
            }
            let receipt = ItemBody::ServerToolCall(ServerToolCall {
                kind: server_tools::item_type(name),
                status: ItemStatus::InProgress,
                call_id: call.id.clone(),
                arguments: Value::Object(arguments.clone()).to_string(),
                output: None,
                error: None,
            });
            Disposition::Server(receipt, name.to_owned(), arguments)
        }
    }
}

/// Returns the disposition of a web search, which is limited to the domains of the request.
fn search_disposition(mut arguments: Map<String, Value>, tools: &ToolConfig) -> Disposition {
    let Some(query) = web_search::query(&arguments) else {
        return Disposition::Rejected(web_search::INVALID_QUERY.to_owned());
    };
    let receipt = ItemBody::WebSearchCall(WebSearchCall {
        status: SearchStatus::InProgress,
        action: SearchAction::Search {
            query: query.to_owned(),
        },
    });
    let domains = tools.search_domains.clone().into();
    arguments.insert(web_search::DOMAINS.to_owned(), domains);
    Disposition::Server(receipt, web_search::NAME.to_owned(), arguments)
}

/// Returns the disposition of an MCP call: an approval request if the user must approve it.
fn mcp_disposition(
    call: &ToolCall,
    tools: &ToolConfig,
    arguments: Map<String, Value>,
) -> Disposition {
    let Some(remote) = tools.server_tools.get(&call.name) else {
        return Disposition::Rejected("There is no such tool any more.".to_owned());
    };
    let text = Value::Object(arguments.clone()).to_string();
    if remote.needs_approval {
        return Disposition::Client(ItemBody::McpApprovalRequest(McpApprovalRequest {
            status: ItemStatus::InProgress,
            server_label: remote.label.clone(),
            name: remote.name.clone(),
            arguments: text,
        }));
    }
    let receipt = ItemBody::McpCall(McpCall {
        status: ItemStatus::InProgress,
        server_label: remote.label.clone(),
        name: remote.name.clone(),
        arguments: text,
        approval_request_id: None,
        output: None,
        error: None,
    });
    Disposition::Server(receipt, call.name.clone(), arguments)
}

/// Returns the action for the client's shell, or `None` if the arguments are invalid.
fn shell_action(arguments: &Map<String, Value>) -> Option<ShellAction> {
    let command = arguments.get("command")?.as_array()?;
    let words = command.iter().map(|it| it.as_str().map(str::to_owned));
    let command: Vec<String> = words.collect::<Option<_>>()?;
    let env = arguments.get("env").and_then(Value::as_object);
    let texts = env.into_iter().flatten().filter(|it| it.1.is_string());
    let given = |name: &str| arguments.get(name).filter(|it| !it.is_null()).cloned();
    (!command.is_empty()).then(|| ShellAction::Exec {
        command,
        env: texts.map(|it| (it.0.clone(), it.1.clone())).collect(),
        timeout_ms: given("timeout_ms"),
        user: given("user"),
        working_directory: given("working_directory"),
    })
}

fn function_call(call_id: String, declared: &DeclaredTool, arguments: String) -> ItemBody {
    let (name, namespace) = match &declared.namespaced {
        Some(function) => (&function.name, Some(function.namespace.clone())),
        None => (&declared.tool.name, None),
    };
    ItemBody::FunctionCall(FunctionCall {
        status: ItemStatus::InProgress,
        call_id,
        name: name.clone(),
        namespace,
        arguments,
    })
}

/// Returns the items for the calls of a truncated answer: only client functions, and none of them
/// waits for an output.
pub fn truncated_calls(calls: Vec<ToolCall>, tools: &ToolConfig) -> Vec<ItemBody> {
    let shown = calls.into_iter().filter_map(|it| {
        let declared = tools.find(&it.name)?;
        let id = unique_call_id(it.id, &mut HashSet::new());
        let arguments = it.arguments.replace('\0', "");
        (declared.kind == ToolKind::Function).then(|| function_call(id, declared, arguments))
    });
    shown.collect()
}

#[cfg(test)]
#[path = "tool_dispatch_tests.rs"]
mod tests;
