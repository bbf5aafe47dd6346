//! Converts chunks, or whole responses, of the Chat Completions API to deltas. Accepts the
//! different formats that real servers send.

use serde_json::{Value, json};

use crate::delta::{Delta, FinishReason, TokenUsage};
use crate::error::LlmError;
use crate::openai_chat::{error, logprobs, tools};
use crate::reasoning::thought::ThoughtField;
use crate::secret::Secret;
use crate::stream::untrusted_json;

/// Parses a chunk, or a whole response. Always returns a delta: a chunk without content yields a
/// keep-alive.
pub fn parse(data: &str, key: Option<&Secret>) -> Result<Vec<Delta>, LlmError> {
    let chunk = untrusted_json::require_object(data)?;
    let choice = chunk
        .pointer("/choices/0")
        .filter(|it| choice_index(it) == 0);
    if chunk.get("error").is_some_and(|it| !it.is_null()) || chunk["object"] == "error" {
        return Err(error::from_object(&chunk, key));
    }
    if let Some(choice) = choice.filter(|it| it.get("error").is_some_and(|it| !it.is_null())) {
        return Err(error::from_object(choice, key));
    }
    let mut deltas = Vec::new();
    if let Some(choice) = choice {
        deltas.extend(reasoning(choice));
        deltas.extend(logprobs::parse(choice).map(Delta::Logprobs));
        deltas.extend(text(choice).filter(|it| !it.is_empty()).map(Delta::Text));
        deltas.extend(
            refusal(choice)
                .filter(|it| !it.is_empty())
                .map(Delta::Refusal),
        );
        deltas.extend(
            delta_or_message(choice)
                .into_iter()
                .flat_map(tools::call_deltas)
                .map(Delta::ToolCall),
        );
        deltas.extend(citations(choice).into_iter().map(Delta::Citation));
        deltas.extend(finish_reason(choice).map(Delta::End));
    }
    deltas.extend(chunk.get("usage").and_then(usage).map(Delta::Usage));
    if deltas.is_empty() {
        deltas.push(Delta::KeepAlive);
    }
    Ok(deltas)
}

/// Returns the index of a choice. Only one is requested; text of another one would be mixed into
/// it.
fn choice_index(choice: &Value) -> i64 {
    choice.get("index").and_then(Value::as_i64).unwrap_or(0)
}

fn delta_or_message(choice: &Value) -> Option<&Value> {
    ["delta", "message"]
        .iter()
        .find_map(|it| choice.get(it).filter(|it| it.is_object()))
}

/// Returns the reasoning: DeepSeek, vLLM and llama.cpp use one field for it, OpenRouter and Groq
/// another, and some servers send both.
fn reasoning(choice: &Value) -> Option<Delta> {
    let message = delta_or_message(choice)?;
    let fields = [ThoughtField::ReasoningContent, ThoughtField::Reasoning];
    fields.into_iter().find_map(|field| {
        let text = untrusted_json::text_at(message, &format!("/{}", field.as_str()))?;
        Some(Delta::ReasoningIn(field, text))
    })
}

fn text(choice: &Value) -> Option<String> {
    match delta_or_message(choice)?.get("content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(part_text).collect()),
        _ => None,
    }
}

fn part_text(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| part.get("text")?.as_str())
}

/// Returns the refusal: a field, or parts of the content.
fn refusal(choice: &Value) -> Option<String> {
    let message = delta_or_message(choice)?;
    let field = message.get("refusal").and_then(Value::as_str);
    let parts = message.get("content").and_then(Value::as_array);
    let of_part = |it: &'_ Value| it.get("refusal")?.as_str().map(str::to_owned);
    let parts: String = parts.into_iter().flatten().filter_map(of_part).collect();
    Some(field.unwrap_or_default().to_owned() + &parts)
}

/// Returns the sources of the text, from models that search the web.
fn citations(choice: &Value) -> Vec<Value> {
    let annotations = delta_or_message(choice).and_then(|it| it["annotations"].as_array());
    let read = |it: &Value| {
        let cited = it.get("url_citation")?;
        // Databases reject U+0000.
        let text = |name: &str| Some(untrusted_json::text_at(cited, name)?.replace('\0', ""));
        Some(json!({
            "type": "url_citation",
            "start_index": cited["start_index"].as_u64()?,
            "end_index": cited["end_index"].as_u64()?,
            "url": text("/url")?,
            "title": text("/title").unwrap_or_default(),
        }))
    };
    annotations.into_iter().flatten().filter_map(read).collect()
}

fn finish_reason(choice: &Value) -> Option<FinishReason> {
    let word = choice.get("finish_reason")?.as_str()?;
    (!word.is_empty()).then(|| FinishReason::from_code(word))
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let prompt_tokens = untrusted_json::token_count(usage, "prompt_tokens");
    let completion_tokens = untrusted_json::token_count(usage, "completion_tokens");
    prompt_tokens.or(completion_tokens)?;
    Some(TokenUsage {
        prompt_tokens: prompt_tokens.unwrap_or(0),
        completion_tokens: completion_tokens.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::prop_assert;
    use proptest::proptest;
    use serde_json::{Value, json};

    use super::parse;
    use crate::delta::{Delta, FinishReason, TokenUsage};
    use crate::reasoning::thought::ThoughtField;

    fn deltas(chunk: serde_json::Value) -> Vec<Delta> {
        parse(&chunk.to_string(), None).unwrap()
    }

    fn text(text: &str) -> Delta {
        Delta::Text(text.to_owned())
    }

    #[test]
    fn text_is_parsed_in_every_known_format() {
        for content in [
            json!("Hi"),
            json!([{ "type": "text", "text": "H" }, { "text": "i" }]),
            json!(["Hi"]),
        ] {
            assert_eq!(
                deltas(json!({ "choices": [{ "delta": { "content": content } }] })),
                [text("Hi")]
            );
        }
        assert_eq!(
            deltas(json!({ "choices": [{ "message": { "content": "Hi" } }] })),
            [text("Hi")]
        );
    }

    #[test]
    fn a_refusal_is_distinguished_from_text() {
        let refusal = |text: &str| Delta::Refusal(text.to_owned());
        for delta in [
            json!({ "refusal": "No." }),
            json!({ "content": null, "refusal": "No." }),
            json!({ "content": [{ "type": "refusal", "refusal": "No." }] }),
        ] {
            let streamed = json!({ "choices": [{ "delta": delta }] });
            assert_eq!(deltas(streamed), [refusal("No.")], "{delta}");
            let whole = json!({ "choices": [{ "message": delta }] });
            assert_eq!(deltas(whole), [refusal("No.")], "{delta}");
        }
        let both = json!({ "content": "Well.", "refusal": "No." });
        assert_eq!(
            deltas(json!({ "choices": [{ "delta": both }] })),
            [text("Well."), refusal("No.")]
        );
    }

    #[test]
    fn citations_follow_their_text() {
        let cited = |url: Value| {
            let place = json!({ "start_index": 0, "end_index": 2, "url": url, "title": "A" });
            json!({ "type": "url_citation", "url_citation": place })
        };
        let delta = json!({
            "content": "Hi",
            "annotations": [cited(json!("https://a.example/")), cited(json!(7)), { "type": "x" }],
        });

        let citation = json!({
            "type": "url_citation", "start_index": 0, "end_index": 2,
            "url": "https://a.example/", "title": "A",
        });
        assert_eq!(
            deltas(json!({ "choices": [{ "delta": delta }] })),
            [text("Hi"), Delta::Citation(citation)]
        );
    }

    #[test]
    fn a_chunk_without_content_is_a_keep_alive() {
        for choices in [
            json!([{ "delta": { "refusal": null } }]),
            json!([{ "delta": { "refusal": "", "content": [{ "refusal": 7 }] } }]),
            json!([]),
            json!(null),
            json!("x"),
            json!([{ "delta": { "role": "assistant" } }]),
            json!([{ "delta": { "content": "" }, "finish_reason": "" }]),
            json!([{ "delta": { "content": null }, "finish_reason": null }]),
            json!([{ "delta": { "content": 7 } }]),
            json!([{ "delta": null }]),
            json!([{ "delta": { "reasoning_content": "", "reasoning": null } }]),
            json!([{ "index": 1, "delta": { "content": "another answer" } }]),
        ] {
            assert_eq!(
                deltas(json!({ "error": null, "usage": null, "choices": choices })),
                [Delta::KeepAlive],
                "{choices}"
            );
        }
    }

    #[test]
    fn reasoning_is_read_from_either_field_and_only_once() {
        let content = ThoughtField::ReasoningContent;
        for (field, delta) in [
            (
                content,
                json!({ "reasoning_content": "Hm.", "content": "Hi" }),
            ),
            (
                ThoughtField::Reasoning,
                json!({ "reasoning": "Hm.", "content": "Hi" }),
            ),
            (
                content,
                json!({ "reasoning_content": "Hm.", "reasoning": "Hm.", "content": "Hi" }),
            ),
        ] {
            assert_eq!(
                deltas(json!({ "choices": [{ "delta": delta }] })),
                [Delta::ReasoningIn(field, "Hm.".to_owned()), text("Hi")],
                "{delta}"
            );
        }
    }

    #[test]
    fn the_last_text_comes_before_the_end_and_the_usage_after() {
        let chunk = json!({
            "choices": [{ "delta": { "content": "." }, "finish_reason": "length" }],
            "usage": { "prompt_tokens": 3, "completion_tokens": -1 },
        });

        let usage = TokenUsage {
            prompt_tokens: 3,
            completion_tokens: 0,
        };
        assert_eq!(
            deltas(chunk),
            [
                text("."),
                Delta::End(FinishReason::Length),
                Delta::Usage(usage)
            ]
        );
    }

    #[test]
    fn implausible_token_counts_are_clamped() {
        let chunk =
            json!({ "usage": { "prompt_tokens": i64::MAX, "completion_tokens": i64::MIN } });

        let usage = TokenUsage {
            prompt_tokens: crate::stream::untrusted_json::MAX_TOKEN_COUNT,
            completion_tokens: 0,
        };
        assert_eq!(deltas(chunk), [Delta::Usage(usage)]);
    }

    #[test]
    fn an_error_object_is_found_in_every_position() {
        for chunk in [
            json!({ "error": { "message": "Overloaded." } }),
            json!({ "error": "Overloaded.", "choices": [{ "delta": { "content": "x" } }] }),
            json!({ "object": "error", "message": "Overloaded." }),
            json!({ "choices": [{ "error": { "message": "Overloaded." }, "finish_reason": "error" }] }),
        ] {
            let error = parse(&chunk.to_string(), None).unwrap_err();

            assert_eq!(
                error.to_string(),
                "The provider returned an error: Overloaded.",
                "{chunk}"
            );
        }
    }

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        let chunk = r#"{"choices":[{"delta":{"content":"a\ud83db\udd80c\ud83e\udd80\\ud83d\ud800\ud83e\udd80"}}]}"#;

        assert_eq!(
            parse(chunk, None).unwrap(),
            [text("a\u{fffd}b\u{fffd}c🦀\\ud83d\u{fffd}🦀")]
        );
    }

    #[test]
    fn anything_but_a_json_object_is_an_error() {
        let deep = "[".repeat(10_000);
        for data in [
            "",
            "{",
            "nonsense",
            "[1]",
            "7",
            r#"{"choices":[{"delta":{"content":"\ud8"}}]}"#,
            "\\",
            &deep,
        ] {
            assert!(parse(data, None).is_err(), "{data:.20}");
        }
    }

    proptest! {
        #[test]
        fn any_input_yields_a_delta_or_an_error(data in "\\PC{0,40}", escapes in r#"(\\(u(d8|dc|0)[0-9a-f]{0,2}|\\|"|é)){0,6}"#) {
            let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"{escapes}"}}}}]}}"#);

            for parsed in [parse(&data, None), parse(&chunk, None)].into_iter().flatten() {
                prop_assert!(!parsed.is_empty());
            }
        }
    }
}
