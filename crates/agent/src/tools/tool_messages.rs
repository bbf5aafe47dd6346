//! Builds the prompt messages for tool calls and their results; long results are cut.

use base::prompt_role::PromptRole;
use llm::request::Message;
use llm::tool::{AnsweredCall, ToolCall};

use crate::tools::tool::ToolResult;

/// Maximum size of a tool output in a prompt, in bytes.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Returns the assistant message of one iteration: its text and its tool calls.
pub fn assistant_message(text: impl Into<String>, calls: Vec<ToolCall>) -> Message {
    Message {
        calls,
        ..Message::new(PromptRole::Assistant, text)
    }
}

/// Returns the message with the result of a call.
pub fn tool_message(call: &ToolCall, output: impl Into<String>) -> Message {
    Message {
        answers: Some(AnsweredCall {
            id: call.id.clone(),
            name: call.name.clone(),
        }),
        ..Message::new(PromptRole::User, output)
    }
}

/// Returns an output as it appears in a prompt: in full, or cut with a note.
pub fn truncate_output(output: &str) -> String {
    if output.len() <= MAX_OUTPUT_BYTES {
        return output.to_owned();
    }
    let kept = &output[..output.floor_char_boundary(MAX_OUTPUT_BYTES)];
    let n_bytes = output.len();
    format!("{kept}\n[The output was cut here: it is {n_bytes} bytes long.]")
}

/// Returns the result of a call as it appears in a prompt.
pub fn result_text(result: &ToolResult) -> String {
    match result {
        Ok(output) => truncate_output(output),
        Err(error) => error_text(error),
    }
}

/// Returns the error of a call as it appears in a prompt.
pub fn error_text(error: &str) -> String {
    format!("Error: {}", truncate_output(error))
}
