//! Converts the stream events of Anthropic's Messages API, or one whole message, to deltas.
//!
//! **Invariant:** a streamed response ends only with `message_stop`.

use serde_json::Value;

use crate::delta::{Delta, FinishReason, TokenUsage};
use crate::dialect::{ChunkParser, ParsedChunk};
use crate::error::LlmError;
use crate::openai_chat::error;
use crate::openai_chat::tools::MAX_CALLS;
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

    /// Ends a block. A tool call without arguments gets an empty object.
    fn end_block(&mut self) -> Vec<Delta> {
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
mod tests {
    use serde_json::{Value, json};

    use super::AnthropicEventParser;
    use crate::delta::{Delta, FinishReason, TokenUsage};
    use crate::dialect::{ChunkParser, ParsedChunk};
    use crate::tool::ToolCallDelta;

    fn read(events: &mut AnthropicEventParser, event: Value) -> ParsedChunk {
        events.parse("", &event.to_string(), None).unwrap()
    }

    fn usage(prompt_tokens: i64, completion_tokens: i64) -> Delta {
        Delta::Usage(TokenUsage {
            prompt_tokens,
            completion_tokens,
        })
    }

    #[test]
    fn cached_tokens_count_as_prompt_tokens_and_later_reports_keep_them() {
        let mut events = AnthropicEventParser::default();
        let start = json!({ "type": "message_start", "message": { "usage": {
            "input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 1,
        } } });
        let late = json!({ "type": "message_delta", "delta": { "stop_reason": "max_tokens" }, "usage": { "output_tokens": 9 } });

        assert_eq!(read(&mut events, start).deltas, [usage(913, 1)]);
        assert_eq!(read(&mut events, late).deltas, [usage(913, 9)]);
        assert_eq!(
            read(&mut events, json!({ "type": "message_stop" })),
            ParsedChunk::last(vec![Delta::End(FinishReason::Length)])
        );
    }

    #[test]
    fn an_event_without_content_is_a_keep_alive() {
        for event in [
            json!({ "type": "ping" }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "content_block_start", "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_delta", "delta": { "type": "signature_delta", "signature": "Eq" } }),
            json!({ "type": "content_block_delta", "delta": 7 }),
            json!({ "type": "message_start", "message": null }),
            json!({ "type": "message_delta", "delta": { "stop_reason": null } }),
            json!({ "type": "something_new" }),
            json!({}),
        ] {
            assert_eq!(
                read(&mut AnthropicEventParser::default(), event.clone()).deltas,
                [Delta::KeepAlive],
                "{event}"
            );
        }
    }

    #[test]
    fn an_error_has_the_status_that_its_type_means() {
        for (kind, status) in [
            ("overloaded_error", Some(529)),
            ("rate_limit_error", Some(429)),
            ("odd", None),
        ] {
            let event =
                json!({ "type": "error", "error": { "type": kind, "message": "Overloaded" } });

            let error = AnthropicEventParser::default()
                .parse("error", &event.to_string(), None)
                .unwrap_err();

            assert_eq!(error.status(), status, "{kind}");
            assert!(error.to_string().contains("Overloaded"), "{error}");
        }
    }

    fn call(index: usize, name: Option<&str>, arguments: &str) -> Delta {
        Delta::ToolCall(ToolCallDelta {
            index,
            id: name.map(|it| format!("toolu_{it}")),
            name: name.map(str::to_owned),
            arguments: arguments.to_owned(),
        })
    }

    fn tool_use(name: &str, input: &Value) -> Value {
        json!({ "type": "tool_use", "id": format!("toolu_{name}"), "name": name, "input": input })
    }

    #[test]
    fn a_call_comes_in_pieces_and_one_without_arguments_has_an_empty_object() {
        let mut events = AnthropicEventParser::default();
        let start = |index: usize, name: &str| json!({ "type": "content_block_start", "index": index, "content_block": tool_use(name, &json!({})) });
        let more = |index: u64, json: &str| json!({ "type": "content_block_delta", "index": index, "delta": { "type": "input_json_delta", "partial_json": json } });
        let stop = json!({ "type": "content_block_stop" });

        let read: Vec<Delta> = [
            start(1, "a"),
            more(1, ""),
            more(1, "{\"x\""),
            more(1, ":1}"),
            stop.clone(),
            start(2, "b"),
            more(2, ""),
            stop,
            more(u64::MAX, "{}"),
        ]
        .into_iter()
        .flat_map(|it| read(&mut events, it).deltas)
        .filter(|it| *it != Delta::KeepAlive)
        .collect();

        assert_eq!(
            read,
            [
                call(1, Some("a"), ""),
                call(1, None, "{\"x\""),
                call(1, None, ":1}"),
                call(2, Some("b"), ""),
                call(2, None, "{}"),
            ]
        );
    }

    #[test]
    fn calls_of_an_unstreamed_message_are_complete() {
        let blocks = [
            json!({ "type": "text", "text": "Hm." }),
            tool_use("a", &json!({ "x": 1 })),
            tool_use("b", &json!({})),
        ];
        let message = json!({ "type": "message", "content": blocks, "stop_reason": "tool_use" });

        assert_eq!(
            read(&mut AnthropicEventParser::default(), message).deltas,
            [
                Delta::Text("Hm.".to_owned()),
                call(1, Some("a"), "{\"x\":1}"),
                call(2, Some("b"), ""),
                call(2, None, "{}"),
                Delta::End(FinishReason::ToolCalls),
            ]
        );
    }

    #[test]
    fn an_unstreamed_message_is_parsed() {
        let message = json!({
            "type": "message",
            "content": [{ "type": "thinking", "thinking": "Hm." }, { "type": "text", "text": "Hi" }],
            "stop_reason": "end_turn",
            "usage": { "input_tokens": 3, "output_tokens": 2 },
        });

        assert_eq!(
            read(&mut AnthropicEventParser::default(), message),
            ParsedChunk::last(vec![
                Delta::Reasoning("Hm.".to_owned()),
                Delta::Text("Hi".to_owned()),
                Delta::End(FinishReason::Stop),
                usage(3, 2),
            ])
        );
    }
}
