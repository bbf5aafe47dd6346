//! Converts the chunks of text completion APIs to deltas. The form of a chunk shows its API; a chunk of
//! a chat, which a provider gets for requests without a text, is parsed as such.

use serde_json::Value;

use crate::delta::{Delta, FinishReason, TokenUsage};
use crate::dialect::{ChunkParser, ParsedChunk};
use crate::error::LlmError;
use crate::openai_chat::dialect::ChatChunkParser;
use crate::openai_chat::error;
use crate::secret::Secret;
use crate::stream::untrusted_json;

/// Parses a response chunk by chunk, without state.
#[derive(Debug, Clone, Copy)]
pub struct TextChunkParser;

impl ChunkParser for TextChunkParser {
    fn parse(
        &mut self,
        name: &str,
        data: &str,
        key: Option<&Secret>,
    ) -> Result<ParsedChunk, LlmError> {
        if data.trim() == "[DONE]" || name == "error" {
            return ChatChunkParser.parse(name, data, key);
        }
        let chunk = untrusted_json::require_object(data)?;
        if chunk.get("error").is_some_and(|it| !it.is_null()) {
            return Err(error::from_object(&chunk, key));
        }
        if let Some(choice) = chunk
            .pointer("/choices/0")
            .filter(|it| it["text"].is_string())
        {
            return Ok(of_openai(&chunk, choice));
        }
        if let Some(result) = chunk.pointer("/results/0") {
            return Ok(of_koboldcpp(result, "text"));
        }
        if chunk.get("token").is_some() {
            return Ok(of_koboldcpp(&chunk, "token"));
        }
        if chunk.get("choices").is_none() && chunk.get("content").is_some() {
            return Ok(of_llama_cpp(&chunk));
        }
        // The last chunk of OpenAI's API, with the usage, has no choice; that of a chat is the same.
        ChatChunkParser.parse(name, data, key)
    }
}

fn of_openai(chunk: &Value, choice: &Value) -> ParsedChunk {
    let index = choice.get("index").and_then(Value::as_i64).unwrap_or(0);
    let mut deltas = Vec::new();
    if index == 0 {
        deltas.extend(untrusted_json::text_at(choice, "/text").map(Delta::Text));
        deltas.extend(finish_reason(&choice["finish_reason"]).map(Delta::End));
    }
    deltas.extend(usage(&chunk["usage"], "prompt_tokens", "completion_tokens"));
    ParsedChunk::from_deltas(deltas)
}

fn of_llama_cpp(chunk: &Value) -> ParsedChunk {
    let mut deltas: Vec<Delta> = untrusted_json::text_at(chunk, "/content")
        .map(Delta::Text)
        .into_iter()
        .collect();
    if chunk["stop"] != true {
        return ParsedChunk::from_deltas(deltas);
    }
    // Older servers have `stopped_limit` instead of `stop_type`.
    let is_limit = chunk["stop_type"] == "limit" || chunk["stopped_limit"] == true;
    deltas.push(Delta::End(match is_limit {
        true => FinishReason::Length,
        false => FinishReason::Stop,
    }));
    deltas.extend(usage(chunk, "tokens_evaluated", "tokens_predicted"));
    ParsedChunk::last(deltas)
}

fn of_koboldcpp(chunk: &Value, field: &str) -> ParsedChunk {
    let text = chunk[field].as_str().filter(|it| !it.is_empty());
    let mut deltas: Vec<Delta> = text
        .map(|it| Delta::Text(it.to_owned()))
        .into_iter()
        .collect();
    match finish_reason(&chunk["finish_reason"]) {
        Some(reason) => {
            deltas.push(Delta::End(reason));
            deltas.extend(usage(chunk, "prompt_tokens", "completion_tokens"));
            ParsedChunk::last(deltas)
        }
        None => ParsedChunk::from_deltas(deltas),
    }
}

fn finish_reason(code: &Value) -> Option<FinishReason> {
    let code = code.as_str().filter(|it| !it.is_empty())?;
    Some(FinishReason::from_code(&code.to_lowercase()))
}

fn usage(counts: &Value, prompt: &str, completion: &str) -> Option<Delta> {
    let prompt_tokens = untrusted_json::token_count(counts, prompt);
    let completion_tokens = untrusted_json::token_count(counts, completion);
    prompt_tokens.or(completion_tokens)?;
    Some(Delta::Usage(TokenUsage {
        prompt_tokens: prompt_tokens.unwrap_or(0),
        completion_tokens: completion_tokens.unwrap_or(0),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::prop_assert;
    use proptest::proptest;
    use serde_json::{Value, json};

    use super::TextChunkParser;
    use crate::delta::{Delta, FinishReason, TokenUsage};
    use crate::dialect::{ChunkParser, ParsedChunk};
    use crate::error::LlmError;

    fn parse(chunk: &Value) -> Result<ParsedChunk, LlmError> {
        TextChunkParser.parse("", &chunk.to_string(), None)
    }

    fn text(text: &str) -> Delta {
        Delta::Text(text.to_owned())
    }

    fn usage(prompt_tokens: i64, completion_tokens: i64) -> Delta {
        Delta::Usage(TokenUsage {
            prompt_tokens,
            completion_tokens,
        })
    }

    #[test]
    fn the_text_of_each_api_is_parsed() {
        for chunk in [
            json!({ "choices": [{ "index": 0, "text": "Hi", "finish_reason": null }] }),
            json!({ "index": 0, "content": "Hi", "tokens": [1], "stop": false }),
            json!({ "token": "Hi", "finish_reason": null }),
            json!({ "choices": [{ "delta": { "content": "Hi" } }] }),
        ] {
            let parsed = parse(&chunk).unwrap();
            assert_eq!(
                (parsed.deltas, parsed.is_last),
                (vec![text("Hi")], false),
                "{chunk}"
            );
        }
    }

    #[test]
    fn the_end_of_each_api_is_parsed() {
        for (chunk, deltas, is_last) in [
            (
                json!({ "choices": [{ "text": "", "finish_reason": "length" }] }),
                vec![Delta::End(FinishReason::Length)],
                false,
            ),
            (
                json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 2 } }),
                vec![usage(3, 2)],
                false,
            ),
            (
                json!({ "content": "", "stop": true, "stop_type": "eos", "tokens_evaluated": 3, "tokens_predicted": 2 }),
                vec![Delta::End(FinishReason::Stop), usage(3, 2)],
                true,
            ),
            (
                json!({ "content": ".", "stop": true, "stopped_limit": true }),
                vec![text("."), Delta::End(FinishReason::Length)],
                true,
            ),
            (
                json!({ "token": ".", "finish_reason": "stop" }),
                vec![text("."), Delta::End(FinishReason::Stop)],
                true,
            ),
            (
                json!({ "results": [{ "text": "Hi", "finish_reason": "length", "prompt_tokens": 3, "completion_tokens": 1 }] }),
                vec![text("Hi"), Delta::End(FinishReason::Length), usage(3, 1)],
                true,
            ),
        ] {
            assert_eq!(
                parse(&chunk).unwrap(),
                ParsedChunk { deltas, is_last },
                "{chunk}"
            );
        }
    }

    #[test]
    fn an_error_in_a_stream_is_an_error() {
        let chunk =
            json!({ "error": { "code": 500, "message": "no slot", "type": "server_error" } });

        assert!(parse(&chunk).unwrap_err().to_string().contains("no slot"));
        assert!(TextChunkParser.parse("", "<html>", None).is_err());
    }

    #[test]
    fn other_choices_are_ignored() {
        let chunk =
            json!({ "choices": [{ "index": 1, "text": "other", "finish_reason": "stop" }] });

        assert_eq!(parse(&chunk).unwrap().deltas, [Delta::KeepAlive]);
    }

    proptest! {
        #[test]
        fn any_chunk_is_parsed_or_refused(data in ".{0,60}") {
            if let Ok(parsed) = TextChunkParser.parse("", &data, None) {
                prop_assert!(!parsed.deltas.is_empty());
            }
        }
    }
}
