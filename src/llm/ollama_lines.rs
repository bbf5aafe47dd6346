//! An answer of Ollama's own API, one JSON object a line.

use serde_json::Value;

use crate::llm::chat_error;
use crate::llm::chat_tools;
use crate::llm::delta::Delta;
use crate::llm::delta::FinishReason;
use crate::llm::delta::Usage;
use crate::llm::dialect::Piece;
use crate::llm::dialect::Reader;
use crate::llm::error::LlmError;
use crate::llm::json;
use crate::llm::secret::Secret;
use crate::llm::tool::CallPiece;

/// Reads an answer line by line.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    /// Calls are whole, and come in order.
    n_calls: usize,
}

impl Reader for Lines {
    fn read(&mut self, _name: &str, data: &str, key: Option<&Secret>) -> Result<Piece, LlmError> {
        let line = json::object(data)?;
        if line.get("error").is_some_and(|it| !it.is_null()) {
            return Err(chat_error::from_object(&line, key));
        }
        let message = &line["message"];
        let thought = json::text(message, "/thinking").map(Delta::Reasoning);
        let text = json::text(message, "/content").map(Delta::Text);
        let mut deltas: Vec<Delta> = thought.into_iter().chain(text).collect();
        deltas.extend(self.calls(message));
        if line["done"] != true {
            return Ok(Piece::of(deltas));
        }
        let word = line["done_reason"].as_str().unwrap_or("stop");
        let reason = match FinishReason::from_word(word) {
            // It has no word of its own for an end that is a call.
            FinishReason::Stop if self.n_calls > 0 => FinishReason::ToolCalls,
            reason => reason,
        };
        deltas.push(Delta::End(reason));
        deltas.extend(usage(&line).map(Delta::Usage));
        Ok(Piece::last(deltas))
    }
}

impl Lines {
    /// Calls as the compatible API tells them; each line counts from the beginning, or not at all.
    fn calls(&mut self, message: &Value) -> Vec<Delta> {
        let mut calls = Vec::new();
        for call in chat_tools::pieces(message) {
            if self.n_calls == chat_tools::MAX_CALLS {
                break;
            }
            let arguments = match call.arguments.is_empty() {
                true => "{}".to_owned(),
                false => call.arguments,
            };
            calls.push(Delta::Call(CallPiece {
                index: self.n_calls,
                arguments,
                ..call
            }));
            self.n_calls += 1;
        }
        calls
    }
}

fn usage(line: &Value) -> Option<Usage> {
    let completion_tokens = json::tokens(line, "eval_count")?;
    Some(Usage {
        // It is left out when the whole prompt was known from before.
        prompt_tokens: json::tokens(line, "prompt_eval_count").unwrap_or(0),
        completion_tokens,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::Lines;
    use crate::llm::delta::Delta;
    use crate::llm::delta::FinishReason;
    use crate::llm::delta::Usage;
    use crate::llm::dialect::Piece;
    use crate::llm::dialect::Reader;
    use crate::llm::tool::CallPiece;

    fn read(line: &Value) -> Piece {
        Lines::default().read("", &line.to_string(), None).unwrap()
    }

    #[test]
    fn the_last_line_has_the_reason_and_the_bill() {
        let line = json!({
            "message": { "role": "assistant", "content": "." },
            "done": true, "done_reason": "length", "prompt_eval_count": 7, "eval_count": 3,
        });

        assert_eq!(
            read(&line),
            Piece::last(vec![
                Delta::Text(".".to_owned()),
                Delta::End(FinishReason::Length),
                Delta::Usage(Usage {
                    prompt_tokens: 7,
                    completion_tokens: 3,
                }),
            ])
        );
        assert_eq!(
            read(&json!({ "done": true })),
            Piece::last(vec![Delta::End(FinishReason::Stop)])
        );
    }

    #[test]
    fn what_says_nothing_is_a_sign_of_life() {
        for line in [
            json!({}),
            json!({ "message": { "content": "" }, "done": false }),
            json!({ "message": { "content": 7, "thinking": null } }),
            json!({ "message": "x", "done": "yes" }),
        ] {
            assert_eq!(read(&line).deltas, [Delta::Life], "{line}");
        }
    }

    #[test]
    fn calls_are_counted_over_all_lines_and_are_why_it_ends() {
        let mut lines = Lines::default();
        let mut read = |line: Value| lines.read("", &line.to_string(), None).unwrap().deltas;
        let call = |index, arguments: &str| {
            Delta::Call(CallPiece {
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
