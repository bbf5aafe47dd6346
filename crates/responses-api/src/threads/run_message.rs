//! Defines the messages that a run writes, with their parts.

use base::clock::Timestamp;
use serde_json::{Map, Value, json};

use crate::object_ids;
use crate::threads::run_state::RunHeader;
use crate::threads::thread_message_object::{StoredThreadMessage, ThreadMessageObject};
use crate::threads::thread_status::{ThreadMessageRole, ThreadMessageStatus};

/// A message that a run writes.
#[derive(Clone, Debug, PartialEq)]
pub struct RunMessage {
    pub id: String,
    pub status: ThreadMessageStatus,
    pub parts: Vec<RunMessagePart>,
    /// The speaker, if the model has speakers.
    pub speaker: Option<Value>,
    pub incomplete_reason: Option<String>,
    pub created_at: Timestamp,
    /// When it ended, completed or not.
    pub ended_at: Option<Timestamp>,
}

/// A part of such a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunMessagePart {
    Text(String),
    Refusal(String),
}

impl RunMessage {
    /// Returns an empty message that begins now.
    pub fn new(speaker: Option<Value>, now: Timestamp) -> Self {
        Self {
            id: object_ids::generate(object_ids::MESSAGE),
            status: ThreadMessageStatus::InProgress,
            parts: Vec::new(),
            speaker,
            incomplete_reason: None,
            created_at: now,
            ended_at: None,
        }
    }

    /// Appends a text, and returns the position of its part.
    pub fn push(&mut self, text: &RunMessagePart) -> usize {
        match (self.parts.last_mut(), text) {
            (Some(RunMessagePart::Text(before)), RunMessagePart::Text(more))
            | (Some(RunMessagePart::Refusal(before)), RunMessagePart::Refusal(more)) => {
                before.push_str(more);
            }
            _ => self.parts.push(text.clone()),
        }
        self.parts.len() - 1
    }

    /// Returns the message as it is stored.
    pub fn stored(&self, run: &RunHeader) -> StoredThreadMessage {
        let reason = self.incomplete_reason.as_ref();
        StoredThreadMessage {
            id: self.id.clone(),
            created_at: self.created_at,
            assistant_id: Some(run.assistant_id.clone()),
            thread_id: run.thread_id.clone(),
            run_id: Some(run.id.clone()),
            role: ThreadMessageRole::Assistant,
            status: self.status,
            incomplete_details: reason.map(|reason| json!({ "reason": reason })),
            ended_at: self.ended_at,
            content: self.parts.iter().map(RunMessagePart::to_value).collect(),
            metadata: metadata(self.speaker.as_ref()),
        }
    }

    /// Returns the message as clients see it.
    pub fn document(&self, run: &RunHeader) -> ThreadMessageObject {
        self.stored(run).into()
    }
}

impl RunMessagePart {
    /// Returns a part of a stored message; `None` for the parts that only clients write.
    pub fn read(part: &Value) -> Option<Self> {
        match part["type"].as_str()? {
            "text" => Some(Self::Text(part["text"]["value"].as_str()?.to_owned())),
            "refusal" => Some(Self::Refusal(part["refusal"].as_str()?.to_owned())),
            _ => None,
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Text(value) => {
                json!({ "type": "text", "text": { "value": value, "annotations": [] } })
            }
            Self::Refusal(refusal) => json!({ "type": "refusal", "refusal": refusal }),
        }
    }
}

/// Returns the metadata of a message by this speaker: its texts.
fn metadata(speaker: Option<&Value>) -> Value {
    let fields = speaker.and_then(Value::as_object).into_iter().flatten();
    let texts = fields.filter(|it| it.1.is_string());
    let texts: Map<String, Value> = texts.map(|it| (it.0.clone(), it.1.clone())).collect();
    Value::Object(texts)
}
