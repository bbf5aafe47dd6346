//! Converts each line (one JSON object) of a streamed chat response of Ollama's native API to
//! deltas.

use serde_json::Value;

use crate::delta::{Delta, FinishReason, TokenUsage};
use crate::dialect::{ChunkParser, ParsedChunk};
use crate::error::LlmError;
use crate::openai_chat::{error, tools};
use crate::reasoning::thought::ThoughtField;
use crate::secret::Secret;
use crate::stream::untrusted_json;
use crate::tool::ToolCallDelta;

/// Parses a response line by line.
#[derive(Debug, Clone, Default)]
pub struct OllamaLineParser {
    /// Number of calls so far. The API sends calls whole and in order.
    n_calls: usize,
}

impl ChunkParser for OllamaLineParser {
    fn parse(
        &mut self,
        _name: &str,
        data: &str,
        key: Option<&Secret>,
    ) -> Result<ParsedChunk, LlmError> {
        let line = untrusted_json::require_object(data)?;
        if line.get("error").is_some_and(|it| !it.is_null()) {
            return Err(error::from_object(&line, key));
        }
        let message = &line["message"];
        let thought = untrusted_json::text_at(message, "/thinking");
        let thought = thought.map(|it| Delta::ReasoningIn(ThoughtField::Thinking, it));
        let text = untrusted_json::text_at(message, "/content").map(Delta::Text);
        let mut deltas: Vec<Delta> = thought.into_iter().chain(text).collect();
        deltas.extend(self.calls(message));
        if line["done"] != true {
            return Ok(ParsedChunk::from_deltas(deltas));
        }
        let word = line["done_reason"].as_str().unwrap_or("stop");
        let reason = match FinishReason::from_code(word) {
            // The API has no finish reason for tool calls.
            FinishReason::Stop if self.n_calls > 0 => FinishReason::ToolCalls,
            reason => reason,
        };
        deltas.push(Delta::End(reason));
        deltas.extend(usage(&line).map(Delta::Usage));
        Ok(ParsedChunk::last(deltas))
    }
}

impl OllamaLineParser {
    /// Returns the calls of a line, in the format of the compatible API. Their indexes start at
    /// zero in each line or are missing, so they are replaced.
    fn calls(&mut self, message: &Value) -> Vec<Delta> {
        let mut calls = Vec::new();
        for call in tools::call_deltas(message) {
            if self.n_calls == tools::MAX_CALLS {
                break;
            }
            let arguments = match call.arguments.is_empty() {
                true => "{}".to_owned(),
                false => call.arguments,
            };
            calls.push(Delta::ToolCall(ToolCallDelta {
                index: self.n_calls,
                arguments,
                ..call
            }));
            self.n_calls += 1;
        }
        calls
    }
}

fn usage(line: &Value) -> Option<TokenUsage> {
    let completion_tokens = untrusted_json::token_count(line, "eval_count")?;
    Some(TokenUsage {
        // Missing when the whole prompt was cached.
        prompt_tokens: untrusted_json::token_count(line, "prompt_eval_count").unwrap_or(0),
        completion_tokens,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::OllamaLineParser;
    use crate::delta::{Delta, FinishReason, TokenUsage};
    use crate::dialect::{ChunkParser, ParsedChunk};
    use crate::tool::ToolCallDelta;

    fn read(line: &Value) -> ParsedChunk {
        OllamaLineParser::default()
            .parse("", &line.to_string(), None)
            .unwrap()
    }

    #[test]
    fn the_last_line_has_the_finish_reason_and_the_usage() {
        let line = json!({
            "message": { "role": "assistant", "content": "." },
            "done": true, "done_reason": "length", "prompt_eval_count": 7, "eval_count": 3,
        });

        assert_eq!(
            read(&line),
            ParsedChunk::last(vec![
                Delta::Text(".".to_owned()),
                Delta::End(FinishReason::Length),
                Delta::Usage(TokenUsage {
                    prompt_tokens: 7,
                    completion_tokens: 3,
                }),
            ])
        );
        assert_eq!(
            read(&json!({ "done": true })),
            ParsedChunk::last(vec![Delta::End(FinishReason::Stop)])
        );
    }

    #[test]
    fn a_line_without_content_is_a_keep_alive() {
        for line in [
            json!({}),
            json!({ "message": { "content": "" }, "done": false }),
            json!({ "message": { "content": 7, "thinking": null } }),
            json!({ "message": "x", "done": "yes" }),
        ] {
            assert_eq!(read(&line).deltas, [Delta::KeepAlive], "{line}");
        }
    }

    #[test]
    fn calls_are_counted_over_all_lines_and_set_the_finish_reason() {
        let mut lines = OllamaLineParser::default();
        let mut read = |line: Value| lines.parse("", &line.to_string(), None).unwrap().deltas;
        let call = |index, arguments: &str| {
            Delta::ToolCall(ToolCallDelta {
                index,
                id: None,
                name: Some("f".to_owned()),
                arguments: arguments.to_owned(),
            })
        };
        let with = |arguments: Value| json!({ "function": { "index": 0, "name": "f", "arguments": arguments } });

        let one = read(json!({ "message": { "tool_calls": [with(json!({ "x": 1 }))] } }));
        let other =
            read(json!({ "message": { "tool_calls": [with(json!({})), with(json!(null))] } }));
        let end = read(json!({ "done": true, "done_reason": "stop" }));

        assert_eq!(one, [call(0, "{\"x\":1}")]);
        assert_eq!(other, [call(1, "{}"), call(2, "{}")]);
        assert_eq!(end, [Delta::End(FinishReason::ToolCalls)]);
    }
}
