//! The one fold: what happens in a turn becomes a response and its stream of events.
//!
//! **Invariant:** the blocking answer, what GET tells, the last event and a replay are states of
//! this fold, so they cannot differ. Numbers begin at 0 and have no gaps, groups never interleave,
//! there is one terminal event, and all deltas of a part in order are its text. Pure: ids are minted,
//! nothing else is asked.

use crate::clock::Timestamp;
use crate::responses::document::Bill;
use crate::responses::document::Header;
use crate::responses::document::Standing;
use crate::responses::document::Trouble;
use crate::responses::document::document;
use crate::responses::names;
use crate::responses::response::Status;
use serde_json::Value;
use serde_json::json;

/// What can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// It was written down, or began; always first.
    Created,
    /// The model is asked.
    Began,
    /// The next piece of what is thought; never empty.
    Thought(String),
    /// The next piece of what is said; never empty.
    Said(String),
    /// It is over.
    Ended(Ending),
}

/// How a response ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    pub how: How,
    pub usage: Option<Bill>,
    pub at: Timestamp,
}

/// The ways to end.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    Completed,
    /// For this reason.
    Incomplete(&'static str),
    Failed(Trouble),
    Cancelled,
}

/// One event, numbered and put into letters: from here on it is only handed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub seq: i64,
    pub kind: String,
    pub json: String,
}

impl Event {
    /// Whether nothing follows.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "response.completed" | "response.incomplete" | "response.failed"
        )
    }
}

/// A response while it comes to be.
#[derive(Clone, Debug)]
pub struct Fold {
    header: Header,
    standing: Standing,
    next_seq: i64,
    done: Vec<Value>,
    open: Option<Open>,
}

/// The item that is being written.
#[derive(Clone, Debug)]
struct Open {
    id: String,
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
}

impl Fold {
    /// Before anything happened. `status`: queued or in progress.
    pub fn new(header: Header, status: Status) -> Self {
        Self {
            header,
            standing: Standing::at(status),
            next_seq: 0,
            done: Vec::new(),
            open: None,
        }
    }

    /// The fold that gave these events, to go on from there. Of events that are not ours nothing is
    /// taken.
    pub fn replay(header: Header, status: Status, events: &[Value]) -> Self {
        let mut fold = Self::new(header, status);
        for event in events {
            fold.take_back(event);
        }
        fold
    }

    /// The object as it stands; items that are still open are not in it.
    pub fn document(&self) -> Value {
        document(&self.header, &self.standing, &self.done)
    }

    /// The items that are done, in order.
    pub fn items(&self) -> &[Value] {
        &self.done
    }

    /// Where the response stands.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Whether anything was put out beside the state.
    pub fn has_output(&self) -> bool {
        self.open.is_some() || !self.done.is_empty()
    }

    /// Takes the next happening, gives the events that tell of it. After the end nothing happens.
    pub fn apply(&mut self, happening: Happening) -> Vec<Event> {
        let mut events = Vec::new();
        if self.standing.status.is_final() {
            return events;
        }
        match happening {
            Happening::Created => {
                self.tell_state("response.created", &mut events);
                if self.standing.status == Status::Queued {
                    self.tell_state("response.queued", &mut events);
                }
            }
            Happening::Began => {
                self.standing.status = Status::InProgress;
                self.tell_state("response.in_progress", &mut events);
            }
            Happening::Thought(text) => self.write(Kind::Reasoning, &text, &mut events),
            Happening::Said(text) => self.write(Kind::Message, &text, &mut events),
            Happening::Ended(ending) => self.end(ending, &mut events),
        }
        events
    }

    fn write(&mut self, kind: Kind, text: &str, events: &mut Vec<Event>) {
        if self.open.as_ref().is_some_and(|it| it.kind != kind) {
            self.close("completed", events);
        }
        if self.open.is_none() {
            self.open_item(kind, events);
        }
        let index = self.done.len();
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let delta = match kind {
            Kind::Message => json!({
                "type": "response.output_text.delta", "item_id": open.id, "output_index": index,
                "content_index": 0, "delta": text, "logprobs": [],
            }),
            Kind::Reasoning => json!({
                "type": "response.reasoning_summary_text.delta", "item_id": open.id,
                "output_index": index, "summary_index": 0, "delta": text,
            }),
        };
        self.tell(delta, events);
    }

    fn open_item(&mut self, kind: Kind, events: &mut Vec<Event>) {
        let id = names::mint(kind.prefix());
        let index = self.done.len();
        let item = kind.item(&id, "in_progress", None);
        self.tell(
            json!({ "type": "response.output_item.added", "output_index": index, "item": item }),
            events,
        );
        let part = kind.part("");
        self.tell(
            match kind {
                Kind::Message => json!({
                    "type": "response.content_part.added", "item_id": id, "output_index": index,
                    "content_index": 0, "part": part,
                }),
                Kind::Reasoning => json!({
                    "type": "response.reasoning_summary_part.added", "item_id": id,
                    "output_index": index, "summary_index": 0, "part": part,
                }),
            },
            events,
        );
        self.open = Some(Open {
            id,
            kind,
            text: String::new(),
        });
    }

    fn close(&mut self, status: &str, events: &mut Vec<Event>) {
        let Some(Open { id, kind, text }) = self.open.take() else {
            return;
        };
        let index = self.done.len();
        let part = kind.part(&text);
        let item = kind.item(&id, status, Some(&text));
        let (done, part_done) = match kind {
            Kind::Message => (
                json!({
                    "type": "response.output_text.done", "item_id": id, "output_index": index,
                    "content_index": 0, "text": text, "logprobs": [],
                }),
                json!({
                    "type": "response.content_part.done", "item_id": id, "output_index": index,
                    "content_index": 0, "part": part,
                }),
            ),
            Kind::Reasoning => (
                json!({
                    "type": "response.reasoning_summary_text.done", "item_id": id,
                    "output_index": index, "summary_index": 0, "text": text,
                }),
                json!({
                    "type": "response.reasoning_summary_part.done", "item_id": id,
                    "output_index": index, "summary_index": 0, "part": part,
                }),
            ),
        };
        self.tell(done, events);
        self.tell(part_done, events);
        let item_done =
            json!({ "type": "response.output_item.done", "output_index": index, "item": item });
        self.tell(item_done, events);
        self.done.push(item);
    }

    fn end(&mut self, ending: Ending, events: &mut Vec<Event>) {
        let (status, item_status, kind) = match &ending.how {
            How::Completed => (Status::Completed, "completed", "response.completed"),
            How::Incomplete(_) => (Status::Incomplete, "incomplete", "response.incomplete"),
            How::Failed(_) => (Status::Failed, "incomplete", "response.failed"),
            How::Cancelled => (Status::Cancelled, "incomplete", "response.incomplete"),
        };
        let has_message = |item: &Value| item["type"] == "message";
        let is_speaking = |it: &Open| it.kind == Kind::Message;
        // A model that stops at once has said the empty text.
        if ending.how == How::Completed
            && !self.open.as_ref().is_some_and(is_speaking)
            && !self.done.iter().any(has_message)
        {
            self.close("completed", events);
            self.open_item(Kind::Message, events);
        }
        self.close(item_status, events);
        self.standing = Standing {
            status,
            incomplete_reason: match &ending.how {
                How::Incomplete(reason) => Some((*reason).to_owned()),
                How::Cancelled => Some("cancelled".to_owned()),
                How::Completed | How::Failed(_) => None,
            },
            error: match ending.how {
                How::Failed(trouble) => Some(trouble),
                _ => None,
            },
            usage: ending.usage,
            ended_at: Some(ending.at),
        };
        self.tell_state(kind, events);
    }

    fn tell_state(&mut self, kind: &str, events: &mut Vec<Event>) {
        let event = json!({ "type": kind, "response": self.document() });
        self.tell(event, events);
    }

    fn tell(&mut self, mut event: Value, events: &mut Vec<Event>) {
        let seq = self.next_seq;
        self.next_seq += 1;
        event["sequence_number"] = json!(seq);
        events.push(Event {
            seq,
            kind: event["type"].as_str().unwrap_or_default().to_owned(),
            json: event.to_string(),
        });
    }

    /// Takes an event that was told before.
    fn take_back(&mut self, event: &Value) {
        self.next_seq = event["sequence_number"].as_i64().unwrap_or_default() + 1;
        match event["type"].as_str().unwrap_or_default() {
            "response.in_progress" => self.standing.status = Status::InProgress,
            "response.output_item.added" => {
                let item = &event["item"];
                self.open = Some(Open {
                    id: item["id"].as_str().unwrap_or_default().to_owned(),
                    kind: match item["type"].as_str() {
                        Some("reasoning") => Kind::Reasoning,
                        _ => Kind::Message,
                    },
                    text: String::new(),
                });
            }
            "response.output_text.delta" | "response.reasoning_summary_text.delta" => {
                if let (Some(open), Some(text)) = (&mut self.open, event["delta"].as_str()) {
                    open.text.push_str(text);
                }
            }
            "response.output_item.done" => {
                self.open = None;
                self.done.push(event["item"].clone());
            }
            _ => {}
        }
    }
}

impl Kind {
    fn prefix(self) -> &'static str {
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

    /// `None`: it has no part yet.
    fn item(self, id: &str, status: &str, text: Option<&str>) -> Value {
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
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
