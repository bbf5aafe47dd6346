//! The groups of texts: messages and what is thought, part by part. Pure.

use crate::responses::names;
use serde_json::Value;
use serde_json::json;
use std::mem;

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

    /// What a part of this kind has its text in.
    fn field(self) -> &'static str {
        match self {
            Self::Said | Self::Thought => "text",
            Self::Refused => "refusal",
        }
    }

    /// A part of this kind before it grows.
    fn empty(self) -> Value {
        match self {
            Self::Said => {
                json!({ "type": "output_text", "text": "", "annotations": [], "logprobs": [] })
            }
            Self::Refused => json!({ "type": "refusal", "refusal": "" }),
            Self::Thought => json!({ "type": "summary_text", "text": "" }),
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
    /// How likely each token of the text was, where that is known.
    logprobs: Vec<Value>,
    /// Where it comes from; told when it is whole.
    citations: Vec<Value>,
}

impl Writing {
    /// Nothing of it was told yet; its first part will be of this kind.
    pub fn new(kind: Kind) -> Self {
        Self {
            id: names::mint(kind.prefix()),
            kind,
            done: Vec::new(),
            text: String::new(),
            logprobs: Vec::new(),
            citations: Vec::new(),
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
    pub fn turn_to(&mut self, kind: Kind, index: usize) -> Vec<Value> {
        let mut events = self.end_part(index);
        self.kind = kind;
        events.push(self.part_added(index));
        events
    }

    /// Its part begins.
    pub fn part_added(&self, index: usize) -> Value {
        let kind = match self.is_said() {
            true => "content_part.added",
            false => "reasoning_summary_part.added",
        };
        self.event(kind, index, "part", self.kind.empty())
    }

    /// It grows, by tokens that were so likely.
    pub fn push(&mut self, text: &str, logprobs: Vec<Value>, index: usize) -> Value {
        self.text.push_str(text);
        let kind = match self.kind {
            Kind::Said => "output_text.delta",
            Kind::Refused => "refusal.delta",
            Kind::Thought => "reasoning_summary_text.delta",
        };
        let mut event = self.event(kind, index, "delta", json!(text));
        if self.kind == Kind::Said {
            event["logprobs"] = json!(logprobs);
            self.logprobs.extend(logprobs);
        }
        event
    }

    /// What it says comes from there.
    pub fn cite(&mut self, citation: Value) {
        if self.kind == Kind::Said {
            self.citations.push(citation);
        }
    }

    /// Its part is whole, or as whole as it gets.
    pub fn end_part(&mut self, index: usize) -> Vec<Value> {
        let cited = self.citations.iter().enumerate();
        let cited = cited.map(|(at, it)| self.annotation_added(at, it, index));
        let mut events: Vec<Value> = cited.collect();
        let text = json!(mem::take(&mut self.text));
        let mut part = self.kind.empty();
        let (kind, whole) = match self.kind {
            Kind::Said => ("output_text.done", "content_part.done"),
            Kind::Refused => ("refusal.done", "content_part.done"),
            Kind::Thought => ("reasoning_summary_text.done", "reasoning_summary_part.done"),
        };
        let field = self.kind.field();
        let mut done = self.event(kind, index, field, text.clone());
        part[field] = text;
        if self.kind == Kind::Said {
            part["logprobs"] = mem::take(&mut self.logprobs).into();
            part["annotations"] = mem::take(&mut self.citations).into();
            done["logprobs"] = part["logprobs"].clone();
        }
        events.extend([done, self.event(whole, index, "part", part.clone())]);
        self.done.push(part);
        events
    }

    fn annotation_added(&self, at: usize, citation: &Value, index: usize) -> Value {
        let kind = "output_text.annotation.added";
        let mut event = self.event(kind, index, "annotation", citation.clone());
        event["annotation_index"] = json!(at);
        event
    }

    fn event(&self, kind: &str, index: usize, field: &str, value: Value) -> Value {
        let place = match self.is_said() {
            true => "content_index",
            false => "summary_index",
        };
        json!({
            "type": format!("response.{kind}"), "item_id": self.id, "output_index": index,
            place: self.done.len(), field: value,
        })
    }
}
