//! The groups of texts: messages and what is thought, part by part. Pure.

use std::mem;

use serde_json::{Value, json};

use crate::responses::object_ids;

/// What a part of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Said, in a message.
    Text,
    /// Said in a message, too: that there will be no answer, and why.
    Refusal,
    /// In an item of its own, which is no message.
    Reasoning,
}

impl TextKind {
    fn is_message(self) -> bool {
        self != Self::Reasoning
    }

    /// The prefix of the ids of its items.
    fn prefix(self) -> &'static str {
        match self.is_message() {
            true => object_ids::MESSAGE,
            false => object_ids::REASONING,
        }
    }

    /// What a part of this kind has its text in.
    fn field(self) -> &'static str {
        match self {
            Self::Text | Self::Reasoning => "text",
            Self::Refusal => "refusal",
        }
    }

    /// A part of this kind before it grows.
    fn empty_part(self) -> Value {
        match self {
            Self::Text => {
                json!({ "type": "output_text", "text": "", "annotations": [], "logprobs": [] })
            }
            Self::Refusal => json!({ "type": "refusal", "refusal": "" }),
            Self::Reasoning => json!({ "type": "summary_text", "text": "" }),
        }
    }
}

/// An item that is being written: parts that are done, and the one that grows.
#[derive(Clone, Debug)]
pub struct OpenText {
    id: String,
    kind: TextKind,
    done: Vec<Value>,
    text: String,
    /// How likely each token of the text was, where that is known.
    logprobs: Vec<Value>,
    /// Where it comes from; told when it is whole.
    annotations: Vec<Value>,
}

impl OpenText {
    /// Nothing of it was told yet; its first part will be of this kind.
    pub fn new(kind: TextKind) -> Self {
        Self {
            id: object_ids::generate(kind.prefix()),
            kind,
            done: Vec::new(),
            text: String::new(),
            logprobs: Vec::new(),
            annotations: Vec::new(),
        }
    }

    /// The one whose beginning was told by this item; `None`: it is no text.
    pub fn from_item(item: &Value) -> Option<Self> {
        let kind = match item["type"].as_str() {
            Some("message") => TextKind::Text,
            Some("reasoning") => TextKind::Reasoning,
            _ => return None,
        };
        Some(Self {
            id: item["id"].as_str().unwrap_or_default().to_owned(),
            ..Self::new(kind)
        })
    }

    /// Takes an event of its group that was told before.
    pub fn restore(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "response.content_part.added" if event["part"]["type"] == "refusal" => {
                self.kind = TextKind::Refusal;
            }
            "response.content_part.added" => self.kind = TextKind::Text,
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_summary_text.delta" => {
                self.text
                    .push_str(event["delta"].as_str().unwrap_or_default());
                self.logprobs
                    .extend(event["logprobs"].as_array().into_iter().flatten().cloned());
            }
            "response.content_part.done" => {
                self.done.push(event["part"].clone());
                (self.text, self.logprobs) = Default::default();
            }
            _ => {}
        }
    }

    /// Whether its part is of this kind.
    pub fn has_kind(&self, kind: TextKind) -> bool {
        self.kind == kind
    }

    /// Whether it is what is said.
    pub fn is_message(&self) -> bool {
        self.kind.is_message()
    }

    /// Whether a part of this kind may follow in it.
    pub fn can_contain(&self, kind: TextKind) -> bool {
        self.is_message() && kind.is_message()
    }

    /// The item, with the parts that are done.
    pub fn item(&self, status: &str) -> Value {
        match self.is_message() {
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
    pub fn switch_to(&mut self, kind: TextKind, index: usize) -> Vec<Value> {
        let mut events = self.end_part(index);
        self.kind = kind;
        events.push(self.part_added(index));
        events
    }

    /// Its part begins.
    pub fn part_added(&self, index: usize) -> Value {
        let kind = match self.is_message() {
            true => "content_part.added",
            false => "reasoning_summary_part.added",
        };
        self.event(kind, index, "part", self.kind.empty_part())
    }

    /// It grows, by tokens that were so likely.
    pub fn push_delta(&mut self, text: &str, logprobs: Vec<Value>, index: usize) -> Value {
        self.text.push_str(text);
        let kind = match self.kind {
            TextKind::Text => "output_text.delta",
            TextKind::Refusal => "refusal.delta",
            TextKind::Reasoning => "reasoning_summary_text.delta",
        };
        let mut event = self.event(kind, index, "delta", json!(text));
        if self.kind == TextKind::Text {
            event["logprobs"] = json!(logprobs);
            self.logprobs.extend(logprobs);
        }
        event
    }

    /// What it says comes from there.
    pub fn add_annotation(&mut self, annotation: Value) {
        if self.kind == TextKind::Text {
            self.annotations.push(annotation);
        }
    }

    /// Its part is whole, or as whole as it gets.
    pub fn end_part(&mut self, index: usize) -> Vec<Value> {
        let added = self.annotations.iter().enumerate();
        let cited = added.map(|(at, it)| self.annotation_added(at, it, index));
        let mut events: Vec<Value> = cited.collect();
        let text = json!(mem::take(&mut self.text));
        let mut part = self.kind.empty_part();
        let (kind, whole) = match self.kind {
            TextKind::Text => ("output_text.done", "content_part.done"),
            TextKind::Refusal => ("refusal.done", "content_part.done"),
            TextKind::Reasoning => ("reasoning_summary_text.done", "reasoning_summary_part.done"),
        };
        let field = self.kind.field();
        let mut done = self.event(kind, index, field, text.clone());
        part[field] = text;
        if self.kind == TextKind::Text {
            part["logprobs"] = mem::take(&mut self.logprobs).into();
            part["annotations"] = mem::take(&mut self.annotations).into();
            done["logprobs"] = part["logprobs"].clone();
        }
        events.extend([done, self.event(whole, index, "part", part.clone())]);
        self.done.push(part);
        events
    }

    fn annotation_added(&self, at: usize, annotation: &Value, index: usize) -> Value {
        let kind = "output_text.annotation.added";
        let mut event = self.event(kind, index, "annotation", annotation.clone());
        event["annotation_index"] = json!(at);
        event
    }

    fn event(&self, kind: &str, index: usize, field: &str, value: Value) -> Value {
        let index_field = match self.is_message() {
            true => "content_index",
            false => "summary_index",
        };
        json!({
            "type": format!("response.{kind}"), "item_id": self.id, "output_index": index,
            index_field: self.done.len(), field: value,
        })
    }
}
