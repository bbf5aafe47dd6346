//! Converts the stream events of Anthropic's Messages API, or one whole message, to deltas.
//!
//! **Invariant:** a streamed response ends only with `message_stop`.

use serde_json::Value;

use crate::delta::{Delta, FinishReason, TokenUsage};
use crate::dialect::{ChunkParser, ParsedChunk};
use crate::error::LlmError;
use crate::openai_chat::error;
use crate::openai_chat::tools::MAX_CALLS;
use crate::reasoning::thought::{MAX_THOUGHT_BYTES, Thought};
use crate::secret::Secret;
use crate::stream::untrusted_json;
use crate::tool::ToolCallDelta;

/// State of a response between two events.
#[derive(Debug, Clone, Default)]
pub struct AnthropicEventParser {
    usage: TokenUsage,
    reason: Option<FinishReason>,
    /// The call whose arguments have not begun. A call without arguments sends no delta for them.
    bare_call: Option<usize>,
    /// The thinking block that is being received.
    thinking: Option<OpenThinking>,
}

/// A thinking block so far.
#[derive(Debug, Clone, Default)]
struct OpenThinking {
    text: String,
    signature: String,
}

impl ChunkParser for AnthropicEventParser {
    fn parse(
        &mut self,
        name: &str,
        data: &str,
        key: Option<&Secret>,
    ) -> Result<ParsedChunk, LlmError> {
        let event = untrusted_json::require_object(data)?;
        let kind = event["type"].as_str().unwrap_or(name);
        Ok(match kind {
            "message_start" => ParsedChunk::from_deltas(self.usage(&event["message"]["usage"])),
            "content_block_start" => ParsedChunk::from_deltas(
                self.start_block(block_index(&event), &event["content_block"]),
            ),
            "content_block_delta" => {
                ParsedChunk::from_deltas(self.continue_block(block_index(&event), &event["delta"]))
            }
            "content_block_stop" => ParsedChunk::from_deltas(self.end_block()),
            "message_delta" => {
                self.reason = finish_reason(&event["delta"]).or(self.reason.take());
                ParsedChunk::from_deltas(self.usage(&event["usage"]))
            }
            "message_stop" => {
                let reason = self.reason.take().unwrap_or(FinishReason::Stop);
                ParsedChunk::last(vec![Delta::End(reason)])
            }
            "error" => return Err(stream_error(&event, key)),
            // A whole message, from servers that do not stream.
            "message" => ParsedChunk::last(self.parse_whole_message(&event)),
            // `ping`, and future event types.
            _ => ParsedChunk::from_deltas(Vec::new()),
        })
    }
}

impl AnthropicEventParser {
    /// Returns the usage so far. Each report contains totals, but not every report contains all
    /// fields.
    fn usage(&mut self, usage: &Value) -> Vec<Delta> {
        let parts = [
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ];
        let prompt: Vec<i64> = parts
            .iter()
            .filter_map(|it| untrusted_json::token_count(usage, it))
            .collect();
        let completion = untrusted_json::token_count(usage, "output_tokens");
        if prompt.is_empty() && completion.is_none() {
            return Vec::new();
        }
        if untrusted_json::token_count(usage, "input_tokens").is_some() {
            self.usage.prompt_tokens = prompt
                .iter()
                .sum::<i64>()
                .min(untrusted_json::MAX_TOKEN_COUNT);
        }
        if let Some(completion) = completion {
            self.usage.completion_tokens = completion;
        }
        vec![Delta::Usage(self.usage)]
    }

    fn start_block(&mut self, index: usize, block: &Value) -> Vec<Delta> {
        if block["type"] == "thinking" {
            self.thinking = Some(OpenThinking::default());
            self.continue_thinking(block);
        }
        if block["type"] == "redacted_thinking" {
            let data = untrusted_json::text_at(block, "/data");
            let data = data.filter(|it| it.len() <= MAX_THOUGHT_BYTES);
            let thought = data.map(|data| Delta::Thought(Thought::Redacted { data }));
            return thought.into_iter().collect();
        }
        if block["type"] != "tool_use" || index >= MAX_CALLS {
            return content_deltas(block);
        }
        let input = block["input"].as_object().filter(|it| !it.is_empty());
        self.bare_call = input.is_none().then_some(index);
        vec![Delta::ToolCall(ToolCallDelta {
            index,
            id: untrusted_json::text_at(block, "/id"),
            name: untrusted_json::text_at(block, "/name"),
            arguments: input.map_or_else(String::new, |it| Value::Object(it.clone()).to_string()),
        })]
    }

    fn continue_block(&mut self, index: usize, delta: &Value) -> Vec<Delta> {
        self.continue_thinking(delta);
        let Some(arguments) = untrusted_json::text_at(delta, "/partial_json") else {
            return content_deltas(delta);
        };
        if index >= MAX_CALLS {
            return Vec::new();
        }
        self.bare_call = None;
        vec![Delta::ToolCall(ToolCallDelta {
            index,
            arguments,
            ..ToolCallDelta::default()
        })]
    }

    /// Appends a piece to the thinking block. A block that is too long is not sent back.
    fn continue_thinking(&mut self, piece: &Value) {
        let Some(open) = &mut self.thinking else {
            return;
        };
        let text = |name: &str| untrusted_json::text_at(piece, name).unwrap_or_default();
        open.text.push_str(&text("/thinking"));
        open.signature.push_str(&text("/signature"));
        if open.text.len() + open.signature.len() > MAX_THOUGHT_BYTES {
            self.thinking = None;
        }
    }

    /// Ends a block. A tool call without arguments gets an empty object, and a thinking block is
    /// complete.
    fn end_block(&mut self) -> Vec<Delta> {
        let thinking = self.thinking.take();
        if let Some(OpenThinking { text, signature }) =
            thinking.filter(|it| !it.signature.is_empty())
        {
            return vec![Delta::Thought(Thought::Signed { text, signature })];
        }
        let bare = self.bare_call.take().map(|index| ToolCallDelta {
            index,
            arguments: "{}".to_owned(),
            ..ToolCallDelta::default()
        });
        bare.map(Delta::ToolCall).into_iter().collect()
    }

    fn parse_whole_message(&mut self, message: &Value) -> Vec<Delta> {
        let blocks = message["content"].as_array();
        let mut deltas = Vec::new();
        for (at, block) in blocks.into_iter().flatten().enumerate() {
            deltas.extend(self.start_block(at, block));
            deltas.extend(self.end_block());
        }
        deltas.push(Delta::End(
            finish_reason(message).unwrap_or(FinishReason::Stop),
        ));
        deltas.extend(self.usage(&message["usage"]));
        deltas
    }
}

/// Returns the index of the block of an event.
fn block_index(event: &Value) -> usize {
    let index = event["index"].as_u64().unwrap_or_default();
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// Returns the text or reasoning of a block or of a delta; a signature yields nothing.
fn content_deltas(block: &Value) -> Vec<Delta> {
    let thought = untrusted_json::text_at(block, "/thinking").map(Delta::Reasoning);
    let text = untrusted_json::text_at(block, "/text").map(Delta::Text);
    thought.into_iter().chain(text).collect()
}

fn finish_reason(delta: &Value) -> Option<FinishReason> {
    delta["stop_reason"].as_str().map(FinishReason::from_code)
}

/// Converts an error in a stream; its type determines the HTTP status it would have had.
fn stream_error(event: &Value, key: Option<&Secret>) -> LlmError {
    let status = match event["error"]["type"].as_str().unwrap_or_default() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return error::from_object(event, key),
    };
    error::from_event(status, event, key)
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
