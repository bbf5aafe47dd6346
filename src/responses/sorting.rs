//! What a model called, sorted by who must do something about it. Pure but for new ids.

use crate::llm::tool::ToolCall;
use crate::responses::call_groups::kind_of;
use crate::responses::fold_calls::Call;
use crate::responses::names;
use crate::responses::open_calls::RECEIPT;
use crate::responses::toolbox::Kind;
use crate::responses::toolbox::Toolbox;
use crate::tools::parse_arguments;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use std::collections::HashSet;

/// The longest id that a call may have from its provider.
const MAX_ID_CHARS: usize = 64;

/// The calls of one round, in order.
#[derive(Debug, Default)]
pub struct Sorted {
    pub made: Vec<Made>,
    /// There were more than may be made.
    pub is_over: bool,
}

/// A call, as the model will be told that it made it, and what becomes of it.
#[derive(Debug)]
pub struct Made {
    pub call: ToolCall,
    pub fate: Fate,
}

#[derive(Debug)]
pub enum Fate {
    /// The client runs it.
    Client(Call),
    /// We do: its receipt, the tool's name, the arguments.
    Server(Call, String, Map<String, Value>),
    /// Nobody does, for this reason, and nobody is shown it but the model.
    Refused(String),
}

/// How many calls may still be made.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// By anybody.
    pub all: u32,
    /// By us.
    pub server: u32,
}

/// Sorts. `known`: the ids of all calls before, to which those of these are added.
pub fn sort(
    calls: Vec<ToolCall>,
    toolbox: &Toolbox,
    known: &mut HashSet<String>,
    left: &mut Left,
) -> Sorted {
    let most = if toolbox.is_serial { 1 } else { usize::MAX };
    let mut sorted = Sorted::default();
    for mut call in calls.into_iter().take(most) {
        call.id = own_id(call.id, known);
        let fate = fate(&call, toolbox);
        let counts = match fate {
            Fate::Client(_) => (1, 0),
            Fate::Server(..) => (1, 1),
            Fate::Refused(_) => (0, 0),
        };
        if left.all < counts.0 || left.server < counts.1 {
            sorted.is_over = true;
            continue;
        }
        left.all -= counts.0;
        left.server -= counts.1;
        // Servers that look into it must not stumble over what is no JSON.
        if !parse_arguments::is_object(&call.arguments) {
            call.arguments = "{}".to_owned();
        }
        sorted.made.push(Made { call, fate });
    }
    sorted
}

/// The provider's id, or ours where it has none, or the same twice.
fn own_id(id: String, known: &mut HashSet<String>) -> String {
    let is_short = (1..=MAX_ID_CHARS).contains(&id.chars().count());
    let is_new = is_short && !id.contains('\0') && !known.contains(&id);
    let id = if is_new { id } else { names::mint(names::CALL) };
    known.insert(id.clone());
    id
}

fn fate(call: &ToolCall, toolbox: &Toolbox) -> Fate {
    let Some(declared) = toolbox.find(&call.name) else {
        return Fate::Refused("There is no tool of this name that may be called now.".to_owned());
    };
    let Some(arguments) = parse_arguments::parse(&call.arguments) else {
        return Fate::Refused("The arguments are no JSON object.".to_owned());
    };
    match declared.kind {
        Kind::Function => Fate::Client(json!({
            "type": "function_call", "call_id": call.id, "name": call.name,
            "arguments": if call.arguments.trim().is_empty() { "{}" } else { &call.arguments },
        })),
        Kind::Custom => match arguments.get("input").and_then(Value::as_str) {
            Some(input) => Fate::Client(json!({
                "type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": input,
            })),
            None => Fate::Refused("The argument `input` is no text.".to_owned()),
        },
        Kind::Shell => match action(&arguments) {
            Some(action) => Fate::Client(json!({
                "type": "local_shell_call", "call_id": call.id, "action": action,
            })),
            None => Fate::Refused("The argument `command` is no list of texts.".to_owned()),
        },
        Kind::Remote => remote(call, toolbox, arguments),
        Kind::Server => {
            let name = kind_of(&call.name);
            let receipt = json!({
                "type": format!("{RECEIPT}{name}"), "call_id": call.id,
                "arguments": Value::Object(arguments.clone()).to_string(),
                "output": null, "error": null,
            });
            Fate::Server(receipt, name.to_owned(), arguments)
        }
    }
}

/// A call of a tool elsewhere: asked for, where somebody must agree.
fn remote(call: &ToolCall, toolbox: &Toolbox, arguments: Map<String, Value>) -> Fate {
    let Some(remote) = toolbox.remotes.get(&call.name) else {
        return Fate::Refused("There is no such tool any more.".to_owned());
    };
    let text = Value::Object(arguments.clone()).to_string();
    if remote.needs_approval {
        return Fate::Client(json!({
            "type": "mcp_approval_request", "server_label": remote.label, "name": remote.name,
            "arguments": text,
        }));
    }
    let receipt = json!({
        "type": "mcp_call", "server_label": remote.label, "name": remote.name,
        "arguments": text, "approval_request_id": null, "output": null, "error": null,
    });
    Fate::Server(receipt, call.name.clone(), arguments)
}

/// What a client's shell is asked to do.
fn action(arguments: &Map<String, Value>) -> Option<Value> {
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

/// What is shown of calls of an answer that was cut off: functions that a client would have run. None
/// of them waits for an output.
pub fn shown_of_cut(calls: Vec<ToolCall>, toolbox: &Toolbox) -> Vec<Call> {
    let function = |it: &ToolCall| {
        let found = toolbox.find(&it.name);
        found.is_some_and(|it| it.kind == Kind::Function)
    };
    let calls = calls.into_iter().filter(function);
    let shown = calls.map(|it| {
        let id = own_id(it.id, &mut HashSet::new());
        json!({
            "type": "function_call", "call_id": id, "name": it.name,
            "arguments": it.arguments.replace('\0', ""),
        })
    });
    shown.collect()
}

#[cfg(test)]
#[path = "sorting_tests.rs"]
mod tests;
