//! Converts tool calls and their outputs to prompt messages: adjacent calls form one assistant
//! message with the text of the same iteration, followed by the outputs in call order. Pure.
//!
//! **Invariant:** a call is in the prompt only together with its output, so that provider APIs
//! accept every prompt.

use std::collections::{HashMap, VecDeque};

use agent::tools::mcp::tool_names::model_facing_name;
use agent::tools::tool_messages::{assistant_message, error_text, tool_message, truncate_output};
use base::prompt_role::PromptRole;
use llm::request::Message;
use llm::tool::ToolCall;
use responses_api::item::SERVER_TOOL_PREFIX;
use responses_api::pending_tool_calls::{call_id, is_call, is_incomplete, is_output};
use serde_json::{Value, json};

use crate::responses::execution::mcp::approvals;
use crate::responses::input::prompt::{PromptItem, text};

/// The name of the client's shell for the model.
pub const SHELL_TOOL_NAME: &str = "local_shell";

/// Returns the name of a server-side tool for the model.
pub fn builtin_tool_alias(kind: &str) -> String {
    format!("troupe_{}", kind.trim_start_matches(SERVER_TOOL_PREFIX))
}

/// Returns the registry name of a tool from its name for the model.
pub fn builtin_tool_name(server_name: &str) -> &str {
    server_name.trim_start_matches("troupe_")
}

/// Converts items, each with whether it is old; `message` converts those that are not calls.
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
            // Calls after this item belong to another iteration.
            assembler.finish_group();
        } else if is_incomplete(item) && (is_call(item) || is_server_tool_item(item)) {
            continue;
        } else if is_server_tool_item(item) {
            assembler.push_call(server_tool_call(item), &server_tool_output(item), *is_old);
        } else if item["type"] == "mcp_approval_request" {
            let answers = items[at..].iter().map(|it| it.0);
            if let Some(refusal) = approvals::rejection_reason(&text_field(item, "id"), answers) {
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

/// The prompt while it is built.
#[derive(Default)]
struct PromptAssembler {
    items: Vec<PromptItem>,
    /// The calls of the current iteration with their outputs.
    group: Vec<(ToolCall, Message)>,
    /// Whether the whole group is old.
    is_old: bool,
    /// The last prompt item is the model's text of the current iteration.
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

    /// Ends the current iteration.
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
        // MCP calls have no `call_id` of a provider.
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
