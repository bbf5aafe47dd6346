//! Converts tool calls and their outputs to prompt messages: adjacent calls form one assistant
//! message with the text of the same iteration, followed by the outputs in call order. No I/O.
//!
//! **Invariant:** a call is in the prompt only together with its output, so that provider APIs
//! accept every prompt. Reasoning is in the prompt only together with the calls that follow it.

use std::collections::{HashMap, VecDeque};

use agent::tools::mcp::tool_names::model_facing_name;
use agent::tools::tool_messages::{assistant_message, error_text, tool_message, truncate_output};
use base::prompt_role::PromptRole;
use llm::reasoning::thought::{Thought, ThoughtField};
use llm::request::Message;
use llm::tool::ToolCall;
use responses_api::request::items::call_items::{
    BuiltinCall, CallInput, CallOutput, ClientCall, RemoteCall,
};
use responses_api::request::items::content::InputReasoning;
use responses_api::request::items::item_view::{ItemContent, ItemView};
use responses_api::request::tools::tool_names;
use responses_api::request::tools::tool_names::SHELL_TOOL_NAME;
use responses_api::server_tools;
use serde_json::{Value, json};

use crate::responses::execution::mcp::approvals;
use crate::responses::input::part_content;

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptItem {
    pub message: Message,
    /// Whether it may be dropped if the prompt is too long.
    pub is_droppable: bool,
}

/// Converts items; `message` converts messages. No item is marked as droppable.
pub fn assemble(
    items: &[&Value],
    message: impl Fn(&ItemView) -> Option<Message>,
) -> Vec<PromptItem> {
    let views: Vec<ItemView> = items.iter().map(|it| ItemView::of(it)).collect();
    let mut outputs: HashMap<&str, VecDeque<(usize, &CallOutput)>> = HashMap::new();
    for (at, view) in views.iter().enumerate() {
        if let ItemContent::Output(output) = &view.content {
            let waiting = outputs.entry(output.call_id).or_default();
            waiting.push_back((at, output));
        }
    }
    let mut assembler = PromptAssembler::default();
    for (at, view) in views.iter().enumerate() {
        match &view.content {
            // Calls after this item belong to another iteration.
            ItemContent::Output(_) => assembler.finish_group(),
            ItemContent::Reasoning(reasoning) => {
                assembler.finish_group();
                assembler.thoughts.extend(thought(reasoning));
            }
            ItemContent::Call(_) | ItemContent::BuiltinCall(_) | ItemContent::RemoteCall(_)
                if view.is_incomplete() => {}
            ItemContent::BuiltinCall(call) => {
                let output = server_tool_output(call.output, call.error);
                assembler.push_call(builtin_call(call), &output);
            }
            ItemContent::RemoteCall(call) => {
                let output = server_tool_output(call.output, call.error);
                assembler.push_call(remote_call(view.id, call), &output);
            }
            ItemContent::ApprovalRequest(call) => {
                let answers = items[at..].iter().copied();
                if let Some(refusal) = approvals::rejection_reason(view.id, answers) {
                    let output = error_text(&refusal);
                    assembler.push_call(remote_call(view.id, call), &output);
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
                if let Some((_, output)) = output {
                    let (call, text) = (client_call(call), part_content::text(&output.parts));
                    let answer = Message {
                        attachments: part_content::attachments(&output.parts),
                        ..tool_message(&call, text)
                    };
                    assembler.group.push((call, answer));
                }
            }
            _ => {
                if let Some(message) = message(view) {
                    assembler.push_text(message);
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
    /// The reasoning before the next calls.
    thoughts: Vec<Thought>,
    /// The last prompt item is the model's text of the current iteration.
    has_text: bool,
}

impl PromptAssembler {
    fn push_text(&mut self, message: Message) {
        self.finish_group();
        self.has_text = message.role == PromptRole::Assistant;
        if !self.has_text {
            self.thoughts.clear();
        }
        self.push_item(message);
    }

    fn push_item(&mut self, message: Message) {
        self.items.push(PromptItem {
            is_droppable: false,
            message,
        });
    }

    fn push_call(&mut self, call: ToolCall, output: &str) {
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
        let message = match text {
            Some(text) => Message {
                calls,
                ..text.message
            },
            None => assistant_message("", calls),
        };
        let thoughts = std::mem::take(&mut self.thoughts);
        self.push_item(Message {
            thoughts,
            ..message
        });
        let answers: Vec<Message> = answers;
        for answer in answers {
            self.push_item(answer);
        }
    }
}

/// Returns the reasoning of an item: what this server has encrypted in it, which is decrypted by now,
/// otherwise its readable text.
fn thought(reasoning: &InputReasoning) -> Option<Thought> {
    if let Some(opened) = reasoning.encrypted_content {
        return serde_json::from_str(opened).ok();
    }
    let text = reasoning.texts.concat();
    let field = ThoughtField::ReasoningContent;
    (!text.is_empty()).then_some(Thought::Text { field, text })
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
