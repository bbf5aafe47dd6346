//! How a model is told of what it called, and of what came of that.

use crate::llm::request::{Message, PromptRole};
use crate::llm::tool::{AnsweredCall, ToolCall};
use crate::tools::tool::ToolResult;

/// The longest output of a tool of ours that a model is told.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// What a model has said in one round: a text and calls beside it.
pub fn assistant_message(text: impl Into<String>, calls: Vec<ToolCall>) -> Message {
    Message {
        calls,
        ..Message::new(PromptRole::Assistant, text)
    }
}

/// What came of a call.
pub fn tool_message(call: &ToolCall, output: impl Into<String>) -> Message {
    Message {
        answers: Some(AnsweredCall {
            id: call.id.clone(),
            name: call.name.clone(),
        }),
        ..Message::new(PromptRole::User, output)
    }
}

/// What a model is told of the output of a tool of ours: all of it, or where it was cut.
pub fn truncate_output(output: &str) -> String {
    if output.len() <= MAX_OUTPUT_BYTES {
        return output.to_owned();
    }
    let kept = &output[..output.floor_char_boundary(MAX_OUTPUT_BYTES)];
    let n_bytes = output.len();
    format!("{kept}\n[The output was cut here: it is {n_bytes} bytes long.]")
}

/// What a model is told of what came of a call.
pub fn result_text(result: &ToolResult) -> String {
    match result {
        Ok(output) => truncate_output(output),
        Err(error) => error_text(error),
    }
}

/// What a model is told of a call that did not work.
pub fn error_text(error: &str) -> String {
    format!("Error: {}", truncate_output(error))
}
