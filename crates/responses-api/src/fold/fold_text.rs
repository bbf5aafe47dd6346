//! Builds the stream events of message and reasoning items, part by part. Pure.

use std::mem;

use serde_json::{Value, json};

use crate::object_ids;

/// What kind of text a part contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Ordinary text, in a message item.
    Text,
    /// A refusal, in a message item.
    Refusal,
    /// Reasoning, in an item of its own.
    Reasoning,
}

impl TextKind {
    fn is_message(self) -> bool {
        self != Self::Reasoning
    }

    /// Returns the prefix of the item's id.
    fn prefix(self) -> &'static str {
        match self.is_message() {
            true => object_ids::MESSAGE,
            false => object_ids::REASONING,
        }
    }

    /// Returns the field that contains the text of a part.
    fn field(self) -> &'static str {
        match self {
            Self::Text | Self::Reasoning => "text",
            Self::Refusal => "refusal",
        }
    }

    /// Returns an empty part of this kind.
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

/// An item that is being written: finished parts and the open one.
#[derive(Clone, Debug)]
pub struct OpenText {
    id: String,
    kind: TextKind,
    done: Vec<Value>,
    text: String,
    /// The logprobs of the text so far, if known.
    logprobs: Vec<Value>,
    /// Citations; emitted when the part ends.
    annotations: Vec<Value>,
}

impl OpenText {
    /// Creates an item without events whose first part is of this kind.
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

    /// Restores an item from its `added` event. Returns `None` if it is not a text item.
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

    /// Restores the state after an event of this item that was emitted earlier.
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

    /// Returns whether the open part is of this kind.
    pub fn has_kind(&self, kind: TextKind) -> bool {
        self.kind == kind
    }

    /// Returns whether the item is a message.
    pub fn is_message(&self) -> bool {
        self.kind.is_message()
    }

    /// Returns whether a part of this kind may follow in this item.
    pub fn can_contain(&self, kind: TextKind) -> bool {
        self.is_message() && kind.is_message()
    }

    /// Returns the item with its finished parts.
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

    /// Ends the open part and begins one of another kind.
    pub fn switch_to(&mut self, kind: TextKind, index: usize) -> Vec<Value> {
        let mut events = self.end_part(index);
        self.kind = kind;
        events.push(self.part_added(index));
        events
    }

    /// Returns the event that begins the open part.
    pub fn part_added(&self, index: usize) -> Value {
        let kind = match self.is_message() {
            true => "content_part.added",
            false => "reasoning_summary_part.added",
        };
        self.event(kind, index, "part", self.kind.empty_part())
    }

    /// Appends text with its logprobs and returns the delta event.
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

    /// Adds a citation; only text parts have citations.
    pub fn add_annotation(&mut self, annotation: Value) {
        if self.kind == TextKind::Text {
            self.annotations.push(annotation);
        }
    }

    /// Ends the open part and returns its closing events.
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
