//! Decides for each tool call of a model who runs it: the client, this server, or no one. Pure
//! except for new ids.

use std::collections::HashSet;

use agent::agent_host;
use agent::agent_host::DispatchedCall;
use agent::tools::parse_arguments;
use llm::tool::ToolCall;
use responses_api::fold::fold_calls::CallItem;
use responses_api::object_ids;
use responses_api::pending_tool_calls::SERVER_TOOL_PREFIX;
use serde_json::{Map, Value, json};

use crate::responses::execution::tool_config::{ToolConfig, ToolKind};
use crate::responses::input::prompt_assembler::builtin_tool_name;

/// The longest call id that is accepted from a provider.
const MAX_ID_CHARS: usize = 64;

type DispatchedCalls = agent_host::DispatchedCalls<CallItem>;
type Disposition = agent_host::Disposition<CallItem>;

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
    let mut dispatched = DispatchedCalls::default();
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
        ToolKind::Function => Disposition::Client(json!({
            "type": "function_call", "call_id": call.id, "name": call.name,
            "arguments": if call.arguments.trim().is_empty() { "{}" } else { &call.arguments },
        })),
        ToolKind::Custom => match arguments.get("input").and_then(Value::as_str) {
            Some(input) => Disposition::Client(json!({
                "type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": input,
            })),
            None => Disposition::Rejected("The argument `input` is no text.".to_owned()),
        },
        ToolKind::Shell => match shell_action(&arguments) {
            Some(action) => Disposition::Client(json!({
                "type": "local_shell_call", "call_id": call.id, "action": action,
            })),
            None => Disposition::Rejected("The argument `command` is no list of texts.".to_owned()),
        },
        ToolKind::Remote => mcp_disposition(call, tools, arguments),
        ToolKind::Server => {
            let name = builtin_tool_name(&call.name);
            let receipt = json!({
                "type": format!("{SERVER_TOOL_PREFIX}{name}"), "call_id": call.id,
                "arguments": Value::Object(arguments.clone()).to_string(),
                "output": null, "error": null,
            });
            Disposition::Server(receipt, name.to_owned(), arguments)
        }
    }
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
        return Disposition::Client(json!({
            "type": "mcp_approval_request", "server_label": remote.label, "name": remote.name,
            "arguments": text,
        }));
    }
    let receipt = json!({
        "type": "mcp_call", "server_label": remote.label, "name": remote.name,
        "arguments": text, "approval_request_id": null, "output": null, "error": null,
    });
    Disposition::Server(receipt, call.name.clone(), arguments)
}

/// Returns the action for the client's shell, or `None` if the arguments are invalid.
fn shell_action(arguments: &Map<String, Value>) -> Option<Value> {
    let command = arguments.get("command")?.as_array()?;
    if command.is_empty() || !command.iter().all(Value::is_string) {
        return None;
    }
    let mut action = json!({ "type": "exec", "command": command, "env": {} });
    if let Some(env) = arguments.get("env").and_then(Value::as_object) {
        let texts = env.iter().filter(|it| it.1.is_string());
        action["env"] = texts.map(|it| (it.0.clone(), it.1.clone())).collect();
    }
    for name in ["timeout_ms", "user", "working_directory"] {
        if let Some(value) = arguments.get(name).filter(|it| !it.is_null()) {
            action[name] = value.clone();
        }
    }
    Some(action)
}

/// Returns the items for the calls of a truncated answer: only client functions, and none of them
/// waits for an output.
pub fn truncated_calls(calls: Vec<ToolCall>, tools: &ToolConfig) -> Vec<CallItem> {
    let function = |it: &ToolCall| {
        let found = tools.find(&it.name);
        found.is_some_and(|it| it.kind == ToolKind::Function)
    };
    let calls = calls.into_iter().filter(function);
    let shown = calls.map(|it| {
        let id = unique_call_id(it.id, &mut HashSet::new());
        json!({
            "type": "function_call", "call_id": id, "name": it.name,
            "arguments": it.arguments.replace('\0', ""),
        })
    });
    shown.collect()
}

#[cfg(test)]
#[path = "tool_dispatch_tests.rs"]
mod tests;
