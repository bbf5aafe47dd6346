//! The groups of texts: messages and what is thought, part by part. Pure.

use crate::responses::names;
use serde_json::Value;
use serde_json::json;

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Message,
    Reasoning,
}

impl Kind {
    /// The prefix of its ids.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Message => names::MESSAGE,
            Self::Reasoning => names::REASONING,
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Message => {
                json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
            }
            Self::Reasoning => json!({ "type": "summary_text", "text": text }),
        }
    }

    /// The item; with `text` `None` it has no part yet.
    pub fn item(self, id: &str, status: &str, text: Option<&str>) -> Value {
        let parts: Vec<Value> = text.map(|it| self.part(it)).into_iter().collect();
        match self {
            Self::Message => json!({
                "id": id, "type": "message", "status": status, "role": "assistant",
                "content": parts,
            }),
            Self::Reasoning => {
                json!({ "id": id, "type": "reasoning", "status": status, "summary": parts })
            }
        }
    }

    /// Its part begins.
    pub fn part_added(self, id: &str, index: usize) -> Value {
        let part = self.part("");
        match self {
            Self::Message => json!({
                "type": "response.content_part.added", "item_id": id, "output_index": index,
                "content_index": 0, "part": part,
            }),
            Self::Reasoning => json!({
                "type": "response.reasoning_summary_part.added", "item_id": id,
                "output_index": index, "summary_index": 0, "part": part,
            }),
        }
    }

    /// It grows.
    pub fn delta(self, id: &str, index: usize, text: &str) -> Value {
        match self {
            Self::Message => json!({
                "type": "response.output_text.delta", "item_id": id, "output_index": index,
                "content_index": 0, "delta": text, "logprobs": [],
            }),
            Self::Reasoning => json!({
                "type": "response.reasoning_summary_text.delta", "item_id": id,
                "output_index": index, "summary_index": 0, "delta": text,
            }),
        }
    }

    /// Its part is whole, or as whole as it gets.
    pub fn ended(self, id: &str, index: usize, text: &str) -> [Value; 2] {
        let part = self.part(text);
        match self {
            Self::Message => [
                json!({
                    "type": "response.output_text.done", "item_id": id, "output_index": index,
                    "content_index": 0, "text": text, "logprobs": [],
                }),
                json!({
                    "type": "response.content_part.done", "item_id": id, "output_index": index,
                    "content_index": 0, "part": part,
                }),
            ],
            Self::Reasoning => [
                json!({
                    "type": "response.reasoning_summary_text.done", "item_id": id,
                    "output_index": index, "summary_index": 0, "text": text,
                }),
                json!({
                    "type": "response.reasoning_summary_part.done", "item_id": id,
                    "output_index": index, "summary_index": 0, "part": part,
                }),
            ],
        }
    }
}
