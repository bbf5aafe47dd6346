//! The groups of texts: messages and what is thought, part by part. Pure.

use crate::responses::names;
use serde_json::Value;
use serde_json::json;

/// What a part of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Said, in a message.
    Said,
    /// Said in a message, too: that there will be no answer, and why.
    Refused,
    /// In an item of its own, which is no message.
    Thought,
}

impl Kind {
    fn is_said(self) -> bool {
        self != Self::Thought
    }

    /// The prefix of the ids of its items.
    fn prefix(self) -> &'static str {
        match self.is_said() {
            true => names::MESSAGE,
            false => names::REASONING,
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Said => {
                json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
            }
            Self::Refused => json!({ "type": "refusal", "refusal": text }),
            Self::Thought => json!({ "type": "summary_text", "text": text }),
        }
    }
}

/// An item that is being written: parts that are done, and the one that grows.
#[derive(Clone, Debug)]
pub struct Writing {
    id: String,
    kind: Kind,
    done: Vec<Value>,
    text: String,
}

impl Writing {
    /// Nothing of it was told yet; its first part will be of this kind.
    pub fn new(kind: Kind) -> Self {
        Self {
            id: names::mint(kind.prefix()),
            kind,
            done: Vec::new(),
            text: String::new(),
        }
    }

    /// The one whose beginning was told by this item; `None`: it is no text.
    pub fn begun(item: &Value) -> Option<Self> {
        let kind = match item["type"].as_str() {
            Some("message") => Kind::Said,
            Some("reasoning") => Kind::Thought,
            _ => return None,
        };
        Some(Self {
            id: item["id"].as_str().unwrap_or_default().to_owned(),
            ..Self::new(kind)
        })
    }

    /// Takes an event of its group that was told before.
    pub fn take_back(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "response.content_part.added" if event["part"]["type"] == "refusal" => {
                self.kind = Kind::Refused;
            }
            "response.content_part.added" => self.kind = Kind::Said,
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_summary_text.delta" => {
                self.text
                    .push_str(event["delta"].as_str().unwrap_or_default());
            }
            "response.content_part.done" => self.keep(event["part"].clone()),
            _ => {}
        }
    }

    /// Whether its part is of this kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    /// Whether it is what is said.
    pub fn is_said(&self) -> bool {
        self.kind.is_said()
    }

    /// Whether a part of this kind may follow in it.
    pub fn takes(&self, kind: Kind) -> bool {
        self.is_said() && kind.is_said()
    }

    /// The item, with the parts that are done.
    pub fn item(&self, status: &str) -> Value {
        match self.is_said() {
            true => json!({
                "id": self.id, "type": "message", "status": status, "role": "assistant",
                "content": self.done,
            }),
            false => json!({
                "id": self.id, "type": "reasoning", "status": status, "summary": self.done,
            }),
        }
    }

    /// Ends its part, and begins one of another kind.
    pub fn turn_to(&mut self, kind: Kind, index: usize) -> [Value; 3] {
        let [text, part] = self.end_part(index);
        self.kind = kind;
        [text, part, self.part_added(index)]
    }

    /// Its part begins.
    pub fn part_added(&self, index: usize) -> Value {
        let kind = match self.is_said() {
            true => "content_part.added",
            false => "reasoning_summary_part.added",
        };
        self.event(kind, index, "part", self.kind.part(""))
    }

    /// It grows.
    pub fn push(&mut self, text: &str, index: usize) -> Value {
        self.text.push_str(text);
        let kind = match self.kind {
            Kind::Said => "output_text.delta",
            Kind::Refused => "refusal.delta",
            Kind::Thought => "reasoning_summary_text.delta",
        };
        self.event(kind, index, "delta", json!(text))
    }

    /// Its part is whole, or as whole as it gets.
    pub fn end_part(&mut self, index: usize) -> [Value; 2] {
        let part = self.kind.part(&self.text);
        let (text, field, whole) = match self.kind {
            Kind::Said => ("output_text.done", "text", "content_part.done"),
            Kind::Refused => ("refusal.done", "refusal", "content_part.done"),
            Kind::Thought => (
                "reasoning_summary_text.done",
                "text",
                "reasoning_summary_part.done",
            ),
        };
        let events = [
            self.event(text, index, field, json!(self.text)),
            self.event(whole, index, "part", part.clone()),
        ];
        self.keep(part);
        events
    }

    fn keep(&mut self, part: Value) {
        self.done.push(part);
        self.text.clear();
    }

    fn event(&self, kind: &str, index: usize, field: &str, value: Value) -> Value {
        let place = match self.is_said() {
            true => "content_index",
            false => "summary_index",
        };
        let mut event = json!({
            "type": format!("response.{kind}"), "item_id": self.id, "output_index": index,
            place: self.done.len(), field: value,
        });
        if kind.starts_with("output_text.") {
            event["logprobs"] = json!([]);
        }
        event
    }
}
