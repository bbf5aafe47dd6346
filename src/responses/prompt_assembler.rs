//! Calls and what came of them, in the form in which a model is told: adjacent calls are one message
//! of the model's, with the text of the same round, and their outputs follow in the calls' order.
//! Pure.
//!
//! **Invariant:** a call is told with its output or not at all, so every prompt is one that an API
//! takes.

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use crate::llm::request::{Message, PromptRole};
use crate::llm::tool::ToolCall;
use crate::responses::mcp_approvals;
use crate::responses::pending_tool_calls::{
    SERVER_TOOL_PREFIX, call_id, is_call, is_incomplete, is_output,
};
use crate::responses::prompt::{PromptItem, text};
use crate::tools::mcp::tool_names::model_facing_name;
use crate::tools::tool_messages::{assistant_message, error_text, tool_message, truncate_output};

/// The name under which a model knows the client's shell.
pub const SHELL_TOOL_NAME: &str = "local_shell";

/// The name under which a model knows a tool of ours.
pub fn builtin_tool_alias(kind: &str) -> String {
    format!("troupe_{}", kind.trim_start_matches(SERVER_TOOL_PREFIX))
}

/// What of such a name is a tool's own.
pub fn builtin_tool_name(server_name: &str) -> &str {
    server_name.trim_start_matches("troupe_")
}

/// The entries of these items, each with whether it is old; `message` reads one that is no call.
pub fn assemble(
    items: &[(&Value, bool)],
    message: impl Fn(&Value) -> Option<Message>,
) -> Vec<PromptItem> {
    let mut outputs: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (at, (item, _)) in items.iter().enumerate().filter(|it| is_output(it.1.0)) {
        outputs.entry(call_id(item)).or_default().push_back(at);
    }
    let mut assembler = PromptAssembler::default();
    for (at, (item, is_old)) in items.iter().enumerate() {
        if is_output(item) || item["type"] == "reasoning" {
            // Whatever is called after it is called in another round.
            assembler.finish_group();
        } else if is_incomplete(item) && (is_call(item) || is_server_tool_item(item)) {
            continue;
        } else if is_server_tool_item(item) {
            assembler.push_call(server_tool_call(item), &server_tool_output(item), *is_old);
        } else if item["type"] == "mcp_approval_request" {
            let answers = items[at..].iter().map(|it| it.0);
            if let Some(refusal) = mcp_approvals::rejection_reason(item, answers) {
                assembler.push_call(server_tool_call(item), &error_text(&refusal), *is_old);
            }
        } else if is_call(item) {
            let waiting = outputs.get_mut(call_id(item));
            let output = waiting.and_then(|it| {
                while it.front().is_some_and(|it| *it < at) {
                    it.pop_front();
                }
                it.pop_front()
            });
            if let Some((output, is_output_old)) = output.map(|it| items[it]) {
                assembler.push_call(call(item), &output_text(output), *is_old && is_output_old);
            }
        } else if let Some(message) = message(item) {
            assembler.push_text(message, *is_old);
        }
    }
    assembler.finish_group();
    assembler.items
}

/// The prompt while it is put together.
#[derive(Default)]
struct PromptAssembler {
    items: Vec<PromptItem>,
    /// Calls and their outputs, of the round that is being read.
    group: Vec<(ToolCall, Message)>,
    /// Whether all of the group is old.
    is_old: bool,
    /// The last entry is what the model said in the round that is being read.
    has_text: bool,
}

impl PromptAssembler {
    fn push_text(&mut self, message: Message, is_old: bool) {
        self.finish_group();
        self.has_text = message.role == PromptRole::Assistant;
        self.items.push(PromptItem {
            is_droppable: is_old && message.role != PromptRole::System,
            message,
        });
    }

    fn push_call(&mut self, call: ToolCall, output: &str, is_old: bool) {
        self.is_old = is_old && (self.is_old || self.group.is_empty());
        let answer = tool_message(&call, output);
        self.group.push((call, answer));
    }

    /// The round is over.
    fn finish_group(&mut self) {
        let has_text = std::mem::take(&mut self.has_text);
        if self.group.is_empty() {
            return;
        }
        let (calls, answers) = std::mem::take(&mut self.group).into_iter().unzip();
        let text = self.items.pop_if(|_| has_text);
        let may_go = self.is_old && text.as_ref().is_none_or(|it| it.is_droppable);
        let message = match text {
            Some(text) => Message {
                calls,
                ..text.message
            },
            None => assistant_message("", calls),
        };
        let answers: Vec<Message> = answers;
        let all = std::iter::once(message).chain(answers);
        self.items.extend(all.map(|message| PromptItem {
            message,
            is_droppable: may_go,
        }));
    }
}

fn is_server_tool_item(item: &Value) -> bool {
    item["type"]
        .as_str()
        .is_some_and(|it| it.starts_with(SERVER_TOOL_PREFIX) || it == "mcp_call")
}

fn text_field(item: &Value, name: &str) -> String {
    item[name].as_str().unwrap_or_default().to_owned()
}

fn call(item: &Value) -> ToolCall {
    let (name, arguments) = match item["type"].as_str() {
        Some("custom_tool_call") => {
            let arguments = json!({ "input": item["input"] }).to_string();
            (text_field(item, "name"), arguments)
        }
        Some("local_shell_call") => {
            let mut action = item["action"].clone();
            if let Some(action) = action.as_object_mut() {
                action.shift_remove("type");
            }
            (SHELL_TOOL_NAME.to_owned(), action.to_string())
        }
        _ => (text_field(item, "name"), text_field(item, "arguments")),
    };
    ToolCall {
        id: call_id(item).to_owned(),
        name,
        arguments,
    }
}

fn output_text(item: &Value) -> String {
    text(&item["output"])
}

fn server_tool_call(item: &Value) -> ToolCall {
    if !item["server_label"].is_null() {
        // What a server elsewhere runs has no id of its provider's.
        return ToolCall {
            id: text_field(item, "id"),
            name: model_facing_name(&text_field(item, "server_label"), &text_field(item, "name")),
            arguments: text_field(item, "arguments"),
        };
    }
    ToolCall {
        id: call_id(item).to_owned(),
        name: builtin_tool_alias(&text_field(item, "type")),
        arguments: text_field(item, "arguments"),
    }
}

fn server_tool_output(item: &Value) -> String {
    match item["error"].as_str() {
        Some(error) => error_text(error),
        None => truncate_output(item["output"].as_str().unwrap_or_default()),
    }
}

#[cfg(test)]
#[path = "prompt_assembler_tests.rs"]
mod tests;
