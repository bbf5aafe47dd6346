//! Converts the streamed chunks of the Gemini API to deltas. Each chunk is a complete JSON
//! document; the last one contains a finish reason.

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

/// Parses a response chunk by chunk.
#[derive(Debug, Clone, Default)]
pub struct GeminiChunkParser {
    /// Number of calls so far. The API sends calls whole, in order and without an index.
    n_calls: usize,
}

impl ChunkParser for GeminiChunkParser {
    fn parse(
        &mut self,
        _name: &str,
        data: &str,
        key: Option<&Secret>,
    ) -> Result<ParsedChunk, LlmError> {
        let chunk = untrusted_json::require_object(data)?;
        if chunk.get("error").is_some_and(|it| !it.is_null()) {
            return Err(stream_error(&chunk, key));
        }
        let mut deltas = Vec::new();
        let candidate = &chunk["candidates"][0];
        let parts = candidate["content"]["parts"].as_array();
        let parts = parts.into_iter().flatten();
        for it in parts {
            match self.call(it) {
                None => deltas.extend(part(it)),
                Some(call) => {
                    deltas.push(Delta::ToolCall(call));
                    deltas.extend(self.call_signature(it).map(Delta::Thought));
                }
            }
        }
        deltas.extend(finish_reason(&chunk, candidate).map(|it| Delta::End(self.reason(it))));
        deltas.extend(usage(&chunk["usageMetadata"]).map(Delta::Usage));
        Ok(ParsedChunk::from_deltas(deltas))
    }
}

impl GeminiChunkParser {
    fn call(&mut self, part: &Value) -> Option<ToolCallDelta> {
        let call = part.get("functionCall").filter(|it| it.is_object())?;
        let index = self.n_calls;
        if index == MAX_CALLS {
            return None;
        }
        self.n_calls += 1;
        let arguments = call["args"].as_object().cloned().unwrap_or_default();
        Some(ToolCallDelta {
            index,
            id: untrusted_json::text_at(call, "/id"),
            name: untrusted_json::text_at(call, "/name"),
            arguments: Value::Object(arguments).to_string(),
        })
    }

    /// Returns the signature in the part of the last call.
    fn call_signature(&self, part: &Value) -> Option<Thought> {
        let signature = untrusted_json::text_at(part, "/thoughtSignature")?;
        let call = self.n_calls.checked_sub(1)?;
        let is_short = signature.len() <= MAX_THOUGHT_BYTES;
        is_short.then_some(Thought::CallSignature { call, signature })
    }

    /// Adjusts the finish reason: the API has none for tool calls.
    fn reason(&self, reason: FinishReason) -> FinishReason {
        match reason {
            FinishReason::Stop if self.n_calls > 0 => FinishReason::ToolCalls,
            reason => reason,
        }
    }
}

fn part(part: &Value) -> Option<Delta> {
    let text = untrusted_json::text_at(part, "/text")?;
    Some(match part["thought"] == true {
        true => Delta::Reasoning(text),
        false => Delta::Text(text),
    })
}

/// Returns the finish reason, if any. A rejected prompt has no candidate, only feedback.
fn finish_reason(chunk: &Value, candidate: &Value) -> Option<FinishReason> {
    if chunk["promptFeedback"]["blockReason"].is_string() {
        return Some(FinishReason::ContentFilter);
    }
    let word = untrusted_json::text_at(candidate, "/finishReason")?;
    Some(FinishReason::from_code(&word.to_ascii_lowercase()))
}

/// Returns the usage. Reasoning tokens are counted separately from the text and billed like it.
fn usage(usage: &Value) -> Option<TokenUsage> {
    let prompt = untrusted_json::token_count(usage, "promptTokenCount");
    let output = untrusted_json::token_count(usage, "candidatesTokenCount");
    let thought = untrusted_json::token_count(usage, "thoughtsTokenCount");
    prompt.or(output).or(thought)?;
    Some(TokenUsage {
        prompt_tokens: prompt.unwrap_or(0),
        completion_tokens: (output.unwrap_or(0) + thought.unwrap_or(0))
            .min(untrusted_json::MAX_TOKEN_COUNT),
    })
}

fn stream_error(chunk: &Value, key: Option<&Secret>) -> LlmError {
    let code = chunk["error"]["code"].as_u64();
    match code.and_then(|it| u16::try_from(it).ok()) {
        Some(status @ 400..=599) => error::from_event(status, chunk, key),
        _ => error::from_object(chunk, key),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::GeminiChunkParser;
    use crate::delta::{Delta, FinishReason, TokenUsage};
    use crate::dialect::ChunkParser;
    use crate::reasoning::thought::Thought;
    use crate::tool::ToolCallDelta;

    fn deltas(chunk: &Value) -> Vec<Delta> {
        GeminiChunkParser::default()
            .parse("", &chunk.to_string(), None)
            .unwrap()
            .deltas
    }

    #[test]
    fn reasoning_is_distinguished_from_text_and_counted_like_it() {
        let chunk = json!({
            "candidates": [{
                "content": { "role": "model", "parts": [
                    { "text": "Hm.", "thought": true }, { "text": "Hi" }, { "thoughtSignature": "Ej" },
                ] },
                "finishReason": "STOP",
            }],
            "usageMetadata": { "promptTokenCount": 7, "candidatesTokenCount": 2, "thoughtsTokenCount": 30 },
        });

        assert_eq!(
            deltas(&chunk),
            [
                Delta::Reasoning("Hm.".to_owned()),
                Delta::Text("Hi".to_owned()),
                Delta::End(FinishReason::Stop),
                Delta::Usage(TokenUsage {
                    prompt_tokens: 7,
                    completion_tokens: 32,
                }),
            ]
        );
    }

    #[test]
    fn every_filter_reason_and_a_rejected_prompt_are_content_filters() {
        for word in [
            "SAFETY",
            "RECITATION",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
        ] {
            let chunk = json!({ "candidates": [{ "finishReason": word }] });
            assert_eq!(
                deltas(&chunk),
                [Delta::End(FinishReason::ContentFilter)],
                "{word}"
            );
        }
        assert_eq!(
            deltas(&json!({ "promptFeedback": { "blockReason": "OTHER" } })),
            [Delta::End(FinishReason::ContentFilter)]
        );
        assert_eq!(
            deltas(&json!({ "candidates": [{ "finishReason": "MAX_TOKENS" }] })),
            [Delta::End(FinishReason::Length)]
        );
    }

    #[test]
    fn a_chunk_without_content_is_a_keep_alive() {
        for chunk in [
            json!({}),
            json!({ "candidates": [] }),
            json!({ "candidates": [{ "content": { "parts": [{ "text": "" }, 7, { "inlineData": {} }] } }] }),
            json!({ "candidates": "x", "usageMetadata": 7, "promptFeedback": {} }),
        ] {
            assert_eq!(deltas(&chunk), [Delta::KeepAlive], "{chunk}");
        }
    }

    #[test]
    fn calls_are_counted_over_all_chunks_and_set_the_finish_reason() {
        let mut chunks = GeminiChunkParser::default();
        let mut read = |chunk: Value| chunks.parse("", &chunk.to_string(), None).unwrap().deltas;
        let call = |index, id: Option<&str>, arguments: &str| {
            Delta::ToolCall(ToolCallDelta {
                index,
                id: id.map(str::to_owned),
                name: Some("f".to_owned()),
                arguments: arguments.to_owned(),
            })
        };
        let first = json!({ "functionCall": { "name": "f", "args": { "x": 1 } }, "thoughtSignature": "Ej" });
        let second = json!({ "functionCall": { "name": "f", "id": "fc_1" } });

        let one = read(json!({ "candidates": [{ "content": { "parts": [first] } }] }));
        let other = read(
            json!({ "candidates": [{ "content": { "parts": [second, { "functionCall": 7 }] }, "finishReason": "STOP" }] }),
        );

        let signature = Delta::Thought(Thought::CallSignature {
            call: 0,
            signature: "Ej".to_owned(),
        });
        assert_eq!(one, [call(0, None, "{\"x\":1}"), signature]);
        assert_eq!(
            other,
            [
                call(1, Some("fc_1"), "{}"),
                Delta::End(FinishReason::ToolCalls)
            ]
        );
    }

    #[test]
    fn an_error_contains_its_status() {
        let chunk =
            json!({ "error": { "code": 503, "message": "Overloaded.", "status": "UNAVAILABLE" } });

        let error = GeminiChunkParser::default()
            .parse("", &chunk.to_string(), None)
            .unwrap_err();

        assert_eq!(error.status(), Some(503));
    }
}
