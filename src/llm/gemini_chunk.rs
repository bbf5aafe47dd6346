//! One piece of an answer in the words of the Gemini API. Each stands for itself; the last one has
//! a reason for the end.

use serde_json::Value;

use crate::llm::chat_error;
use crate::llm::chat_tools::MAX_CALLS;
use crate::llm::delta::Delta;
use crate::llm::delta::FinishReason;
use crate::llm::delta::Usage;
use crate::llm::dialect::Piece;
use crate::llm::dialect::Reader;
use crate::llm::error::LlmError;
use crate::llm::json;
use crate::llm::secret::Secret;
use crate::llm::tool::CallPiece;

/// Reads an answer chunk by chunk.
#[derive(Debug, Clone, Default)]
pub struct Chunks {
    /// Calls have no number of their own here; they are whole, and come in order.
    n_calls: usize,
}

impl Reader for Chunks {
    fn read(&mut self, _name: &str, data: &str, key: Option<&Secret>) -> Result<Piece, LlmError> {
        let chunk = json::object(data)?;
        if chunk.get("error").is_some_and(|it| !it.is_null()) {
            return Err(error(&chunk, key));
        }
        let mut deltas = Vec::new();
        let candidate = &chunk["candidates"][0];
        let parts = candidate["content"]["parts"].as_array();
        let parts = parts.into_iter().flatten();
        deltas.extend(parts.filter_map(|it| self.call(it).or_else(|| part(it))));
        deltas.extend(end(&chunk, candidate).map(|it| Delta::End(self.reason(it))));
        deltas.extend(usage(&chunk["usageMetadata"]).map(Delta::Usage));
        Ok(Piece::of(deltas))
    }
}

impl Chunks {
    fn call(&mut self, part: &Value) -> Option<Delta> {
        let call = part.get("functionCall").filter(|it| it.is_object())?;
        let index = self.n_calls;
        if index == MAX_CALLS {
            return None;
        }
        self.n_calls += 1;
        let arguments = call["args"].as_object().cloned().unwrap_or_default();
        Some(Delta::Call(CallPiece {
            index,
            id: json::text(call, "/id"),
            name: json::text(call, "/name"),
            arguments: Value::Object(arguments).to_string(),
        }))
    }

    /// It has no word of its own for an end that is a call.
    fn reason(&self, reason: FinishReason) -> FinishReason {
        match reason {
            FinishReason::Stop if self.n_calls > 0 => FinishReason::ToolCalls,
            reason => reason,
        }
    }
}

fn part(part: &Value) -> Option<Delta> {
    let text = json::text(part, "/text")?;
    Some(match part["thought"] == true {
        true => Delta::Reasoning(text),
        false => Delta::Text(text),
    })
}

/// Why it ended, if it did. A prompt that was refused has no candidate, only feedback.
fn end(chunk: &Value, candidate: &Value) -> Option<FinishReason> {
    if chunk["promptFeedback"]["blockReason"].is_string() {
        return Some(FinishReason::ContentFilter);
    }
    let word = json::text(candidate, "/finishReason")?;
    Some(FinishReason::from_word(&word.to_ascii_lowercase()))
}

/// What it cost: thoughts are counted apart from the text, and paid like it.
fn usage(usage: &Value) -> Option<Usage> {
    let prompt = json::tokens(usage, "promptTokenCount");
    let said = json::tokens(usage, "candidatesTokenCount");
    let thought = json::tokens(usage, "thoughtsTokenCount");
    prompt.or(said).or(thought)?;
    Some(Usage {
        prompt_tokens: prompt.unwrap_or(0),
        completion_tokens: (said.unwrap_or(0) + thought.unwrap_or(0)).min(json::MOST_TOKENS),
    })
}

fn error(chunk: &Value, key: Option<&Secret>) -> LlmError {
    let code = chunk["error"]["code"].as_u64();
    match code.and_then(|it| u16::try_from(it).ok()) {
        Some(status @ 400..=599) => chat_error::from_event(status, chunk, key),
        _ => chat_error::from_object(chunk, key),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::Chunks;
    use crate::llm::delta::Delta;
    use crate::llm::delta::FinishReason;
    use crate::llm::delta::Usage;
    use crate::llm::dialect::Reader;
    use crate::llm::tool::CallPiece;

    fn deltas(chunk: &Value) -> Vec<Delta> {
        Chunks::default()
            .read("", &chunk.to_string(), None)
            .unwrap()
            .deltas
    }

    #[test]
    fn thoughts_are_told_from_text_and_paid_like_it() {
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
                Delta::Usage(Usage {
                    prompt_tokens: 7,
                    completion_tokens: 32,
                }),
            ]
        );
    }

    #[test]
    fn every_kind_of_filter_is_one_and_a_refused_prompt_too() {
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
    fn what_says_nothing_is_a_sign_of_life() {
        for chunk in [
            json!({}),
            json!({ "candidates": [] }),
            json!({ "candidates": [{ "content": { "parts": [{ "text": "" }, 7, { "inlineData": {} }] } }] }),
            json!({ "candidates": "x", "usageMetadata": 7, "promptFeedback": {} }),
        ] {
            assert_eq!(deltas(&chunk), [Delta::Life], "{chunk}");
        }
    }

    #[test]
    fn calls_are_counted_over_all_chunks_and_are_why_it_ends() {
        let mut chunks = Chunks::default();
        let mut read = |chunk: Value| chunks.read("", &chunk.to_string(), None).unwrap().deltas;
        let call = |index, id: Option<&str>, arguments: &str| {
            Delta::Call(CallPiece {
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

        assert_eq!(one, [call(0, None, "{\"x\":1}")]);
        assert_eq!(
            other,
            [
                call(1, Some("fc_1"), "{}"),
                Delta::End(FinishReason::ToolCalls)
            ]
        );
    }

    #[test]
    fn an_error_says_its_status() {
        let chunk =
            json!({ "error": { "code": 503, "message": "Overloaded.", "status": "UNAVAILABLE" } });

        let error = Chunks::default()
            .read("", &chunk.to_string(), None)
            .unwrap_err();

        assert_eq!(error.status(), Some(503));
    }
}
