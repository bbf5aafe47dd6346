//! Converts tool calls and their outputs to prompt messages: adjacent calls form one assistant
//! message with the text of the same iteration, followed by the outputs in call order. No I/O.
//!
//! **Invariant:** a call is in the prompt only together with its output, so that provider APIs
//! accept every prompt.

use std::collections::{HashMap, VecDeque};

use agent::tools::mcp::tool_names::model_facing_name;
use agent::tools::tool_messages::{assistant_message, error_text, tool_message, truncate_output};
use base::prompt_role::PromptRole;
use llm::request::Message;
use llm::tool::ToolCall;
use responses_api::request::items::call_items::{BuiltinCall, CallInput, ClientCall, RemoteCall};
use responses_api::request::items::item_view::{ItemContent, ItemView};
use responses_api::request::tools::tool_names;
use responses_api::request::tools::tool_names::SHELL_TOOL_NAME;
use responses_api::server_tools;
use serde_json::{Value, json};

use crate::responses::execution::mcp::approvals;

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptItem {
    pub message: Message,
    /// An old message that may be dropped; system messages and new input never are.
    pub is_droppable: bool,
}

/// Converts items, each with whether it is old; `message` converts messages.
pub fn assemble(
    items: &[(&Value, bool)],
    message: impl Fn(&ItemView) -> Option<Message>,
) -> Vec<PromptItem> {
    let views: Vec<ItemView> = items.iter().map(|it| ItemView::of(it.0)).collect();
    let mut outputs: HashMap<&str, VecDeque<(usize, String)>> = HashMap::new();
    for (at, view) in views.iter().enumerate() {
        if let ItemContent::Output(output) = &view.content {
            let waiting = outputs.entry(output.call_id).or_default();
            waiting.push_back((at, output.texts.join("\n")));
        }
    }
    let mut assembler = PromptAssembler::default();
    for (at, (view, (_, is_old))) in views.iter().zip(items).enumerate() {
        match &view.content {
            // Calls after this item belong to another iteration.
            ItemContent::Output(_) | ItemContent::Reasoning => assembler.finish_group(),
            ItemContent::Call(_) | ItemContent::BuiltinCall(_) | ItemContent::RemoteCall(_)
                if view.is_incomplete() => {}
            ItemContent::BuiltinCall(call) => {
                let output = server_tool_output(call.output, call.error);
                assembler.push_call(builtin_call(call), &output, *is_old);
            }
            ItemContent::RemoteCall(call) => {
                let output = server_tool_output(call.output, call.error);
                assembler.push_call(remote_call(view.id, call), &output, *is_old);
            }
            ItemContent::ApprovalRequest(call) => {
                let answers = items[at..].iter().map(|it| it.0);
                if let Some(refusal) = approvals::rejection_reason(view.id, answers) {
                    let output = error_text(&refusal);
                    assembler.push_call(remote_call(view.id, call), &output, *is_old);
                }
            }
            ItemContent::Call(call) => {
                let waiting = outputs.get_mut(call.call_id);
                let output = waiting.and_then(|it| {
                    while it.front().is_some_and(|it| it.0 < at) {
                        it.pop_front();
                    }
                    it.pop_front()
                });
                if let Some((output_at, output)) = output {
                    let is_old = *is_old && items[output_at].1;
                    assembler.push_call(client_call(call), &output, is_old);
                }
            }
            _ => {
                if let Some(message) = message(view) {
                    assembler.push_text(message, *is_old);
                }
            }
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
        let is_droppable = self.is_old && text.as_ref().is_none_or(|it| it.is_droppable);
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
            is_droppable,
        }));
    }
}

fn client_call(call: &ClientCall) -> ToolCall {
    let (name, arguments) = match call.input {
        CallInput::Function {
            name,
            namespace,
            arguments,
        } => {
            let full = namespace.map(|it| tool_names::with_namespace(it, name));
            (
                full.unwrap_or_else(|| name.to_owned()),
                arguments.to_owned(),
            )
        }
        CallInput::Custom { name, input } => {
            (name.to_owned(), json!({ "input": input }).to_string())
        }
        CallInput::Shell(action) => {
            let mut action = action.cloned().unwrap_or_default();
            action.shift_remove("type");
            (
                SHELL_TOOL_NAME.to_owned(),
                Value::Object(action).to_string(),
            )
        }
    };
    ToolCall {
        id: call.call_id.to_owned(),
        name,
        arguments,
    }
}

/// Converts an MCP call, which has no `call_id` of a provider.
fn remote_call(id: &str, call: &RemoteCall) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: model_facing_name(call.server_label, call.name),
        arguments: call.arguments.to_owned(),
    }
}

fn builtin_call(call: &BuiltinCall) -> ToolCall {
    ToolCall {
        id: call.call_id.to_owned(),
        name: server_tools::model_name(call.kind),
        arguments: call.arguments.to_owned(),
    }
}

fn server_tool_output(output: Option<&str>, error: Option<&str>) -> String {
    match error {
        Some(error) => error_text(error),
        None => truncate_output(output.unwrap_or_default()),
    }
}

#[cfg(test)]
#[path = "prompt_assembler_tests.rs"]
mod tests;
