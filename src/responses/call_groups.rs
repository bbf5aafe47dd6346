//! Calls and what came of them, in the form in which a model is told: adjacent calls are one message
//! of the model's, with the text of the same round, and their outputs follow in the calls' order.
//! Pure.
//!
//! **Invariant:** a call is told with its output or not at all, so every prompt is one that an API
//! takes.

use crate::llm::request::Message;
use crate::llm::request::PromptRole;
use crate::llm::tool::ToolCall;
use crate::responses::approvals;
use crate::responses::open_calls::RECEIPT;
use crate::responses::open_calls::call_id;
use crate::responses::open_calls::is_broken;
use crate::responses::open_calls::is_call;
use crate::responses::open_calls::is_output;
use crate::responses::prompt::Entry;
use crate::responses::prompt::text;
use crate::tools::mcp::tool_names::model_facing_name;
use crate::tools::tool_messages::assistant_message;
use crate::tools::tool_messages::error_text;
use crate::tools::tool_messages::tool_message;
use crate::tools::tool_messages::truncate_output;
use serde_json::Value;
use serde_json::json;
use std::collections::HashMap;
use std::collections::VecDeque;

/// The name under which a model knows the client's shell.
pub const SHELL: &str = "local_shell";

/// The name under which a model knows a tool of ours.
pub fn server_name(kind: &str) -> String {
    format!("troupe_{}", kind.trim_start_matches(RECEIPT))
}

/// What of such a name is a tool's own.
pub fn kind_of(server_name: &str) -> &str {
    server_name.trim_start_matches("troupe_")
}

/// The entries of these items, each with whether it is old; `message` reads one that is no call.
pub fn entries(
    items: &[(&Value, bool)],
    message: impl Fn(&Value) -> Option<Message>,
) -> Vec<Entry> {
    let mut outputs: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (at, (item, _)) in items.iter().enumerate().filter(|it| is_output(it.1.0)) {
        outputs.entry(call_id(item)).or_default().push_back(at);
    }
    let mut telling = Telling::default();
    for (at, (item, is_old)) in items.iter().enumerate() {
        if is_output(item) || item["type"] == "reasoning" {
            // Whatever is called after it is called in another round.
            telling.close();
        } else if is_broken(item) && (is_call(item) || is_receipt(item)) {
            continue;
        } else if is_receipt(item) {
            telling.call(receipt(item), &receipt_output(item), *is_old);
        } else if item["type"] == "mcp_approval_request" {
            let answers = items[at..].iter().map(|it| it.0);
            if let Some(refusal) = approvals::refusal(item, answers) {
                telling.call(receipt(item), &error_text(&refusal), *is_old);
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
                telling.call(call(item), &output_text(output), *is_old && is_output_old);
            }
        } else if let Some(message) = message(item) {
            telling.say(message, *is_old);
        }
    }
    telling.close();
    telling.entries
}

/// The prompt while it is put together.
#[derive(Default)]
struct Telling {
    entries: Vec<Entry>,
    /// Calls and their outputs, of the round that is being read.
    group: Vec<(ToolCall, Message)>,
    /// Whether all of the group is old.
    is_old: bool,
    /// The last entry is what the model said in the round that is being read.
    has_text: bool,
}

impl Telling {
    fn say(&mut self, message: Message, is_old: bool) {
        self.close();
        self.has_text = message.role == PromptRole::Assistant;
        self.entries.push(Entry {
            may_go: is_old && message.role != PromptRole::System,
            message,
        });
    }

    fn call(&mut self, call: ToolCall, output: &str, is_old: bool) {
        self.is_old = is_old && (self.is_old || self.group.is_empty());
        let answer = tool_message(&call, output);
        self.group.push((call, answer));
    }

    /// The round is over.
    fn close(&mut self) {
        let has_text = std::mem::take(&mut self.has_text);
        if self.group.is_empty() {
            return;
        }
        let (calls, answers) = std::mem::take(&mut self.group).into_iter().unzip();
        let text = self.entries.pop_if(|_| has_text);
        let may_go = self.is_old && text.as_ref().is_none_or(|it| it.may_go);
        let message = match text {
            Some(text) => Message {
                calls,
                ..text.message
            },
            None => assistant_message("", calls),
        };
        let answers: Vec<Message> = answers;
        let all = std::iter::once(message).chain(answers);
        self.entries
            .extend(all.map(|message| Entry { message, may_go }));
    }
}

fn is_receipt(item: &Value) -> bool {
    item["type"]
        .as_str()
        .is_some_and(|it| it.starts_with(RECEIPT) || it == "mcp_call")
}

fn word(item: &Value, name: &str) -> String {
    item[name].as_str().unwrap_or_default().to_owned()
}

fn call(item: &Value) -> ToolCall {
    let (name, arguments) = match item["type"].as_str() {
        Some("custom_tool_call") => {
            let arguments = json!({ "input": item["input"] }).to_string();
            (word(item, "name"), arguments)
        }
        Some("local_shell_call") => {
            let mut action = item["action"].clone();
            if let Some(action) = action.as_object_mut() {
                action.shift_remove("type");
            }
            (SHELL.to_owned(), action.to_string())
        }
        _ => (word(item, "name"), word(item, "arguments")),
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

fn receipt(item: &Value) -> ToolCall {
    if !item["server_label"].is_null() {
        // What a server elsewhere runs has no id of its provider's.
        return ToolCall {
            id: word(item, "id"),
            name: model_facing_name(&word(item, "server_label"), &word(item, "name")),
            arguments: word(item, "arguments"),
        };
    }
    ToolCall {
        id: call_id(item).to_owned(),
        name: server_name(&word(item, "type")),
        arguments: word(item, "arguments"),
    }
}

fn receipt_output(item: &Value) -> String {
    match item["error"].as_str() {
        Some(error) => error_text(error),
        None => truncate_output(item["output"].as_str().unwrap_or_default()),
    }
}

#[cfg(test)]
#[path = "call_groups_tests.rs"]
mod tests;
