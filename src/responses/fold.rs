//! The one fold: what happens in a turn becomes a response and its stream of events.
//!
//! **Invariant:** the blocking answer, what GET tells, the last event and a replay are states of
//! this fold, so they cannot differ. Numbers begin at 0 and have no gaps, groups never interleave,
//! there is one terminal event, and all deltas of a part in order are its text. Pure: ids are minted,
//! nothing else is asked.

use crate::responses::document::Header;
use crate::responses::document::Standing;
use crate::responses::document::document;
use crate::responses::fold_calls;
use crate::responses::fold_calls::Call;
use crate::responses::fold_text::Kind;
use crate::responses::fold_text::Writing;
use crate::responses::fold_voice::Voiced;
use crate::responses::happening::Cut;
use crate::responses::happening::Ending;
use crate::responses::happening::Happening;
use crate::responses::happening::How;
use crate::responses::response::Status;
use serde_json::Value;
use serde_json::json;
use std::mem;

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
    /// How likely the tokens were of what is said next.
    weights: Vec<Value>,
    voice: Voiced,
}

/// The item that is being written.
#[derive(Clone, Debug)]
enum Open {
    Text(Writing),
    /// A tool of ours runs.
    Tool(Value),
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
            weights: Vec::new(),
            voice: Voiced::default(),
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
            Happening::Speaks(speaker) => self.begin_to_speak(speaker, &mut events),
            Happening::Thought(text) => self.write(Kind::Thought, &text, &mut events),
            Happening::Said(text) => self.write(Kind::Said, &text, &mut events),
            Happening::Cited(citation) => self.cite(citation),
            Happening::Weighed(logprobs) => self.weights.extend(logprobs),
            Happening::Refused(text) => self.write(Kind::Refused, &text, &mut events),
            Happening::Called(call, cut) => self.call(&call, cut, &mut events),
            Happening::ToolBegan(call) => self.begin_tool(&call, &mut events),
            Happening::ToolMoved(message) => self.move_tool(&message, &mut events),
            Happening::ToolEnded(outcome) => self.end_tool(outcome, &mut events),
            Happening::AskedAgain => self.close("completed", &mut events),
            Happening::Ended(ending) => self.end(ending, &mut events),
        }
        events
    }

    fn begin_to_speak(&mut self, speaker: Value, events: &mut Vec<Event>) {
        if self.voice.is_somebody() {
            self.say_something(events);
        }
        self.close("completed", events);
        self.voice.now_is(speaker, self.done.len());
    }

    /// A model that stops at once has said the empty text.
    fn say_something(&mut self, events: &mut Vec<Event>) {
        if !self.has_answer() {
            self.close("completed", events);
            self.open_item(Kind::Said, events);
        }
    }

    fn write(&mut self, kind: Kind, text: &str, events: &mut Vec<Event>) {
        let index = self.done.len();
        match &mut self.open {
            Some(Open::Text(writing)) if writing.is(kind) => {}
            Some(Open::Text(writing)) if writing.takes(kind) => {
                for event in writing.turn_to(kind, index) {
                    self.tell(event, events);
                }
            }
            _ => {
                self.close("completed", events);
                self.open_item(kind, events);
            }
        }
        let index = self.done.len();
        if let Some(Open::Text(writing)) = &mut self.open {
            let delta = writing.push(text, mem::take(&mut self.weights), index);
            self.tell(delta, events);
        }
    }

    fn cite(&mut self, citation: Value) {
        if let Some(Open::Text(writing)) = &mut self.open {
            writing.cite(citation);
        }
    }

    fn call(&mut self, call: &Call, cut: Cut, events: &mut Vec<Event>) {
        self.begin_tool(call, events);
        if let Some(Open::Tool(item)) = self.open.take() {
            self.finish(item, cut.status(), events);
        }
    }

    fn begin_tool(&mut self, call: &Call, events: &mut Vec<Event>) {
        self.close("completed", events);
        let item = self.voice.signed(fold_calls::item(call, "in_progress"));
        self.tell_item("added", &fold_calls::begun(&item), events);
        for event in fold_calls::body(&item, self.done.len()) {
            self.tell(event, events);
        }
        self.open = Some(Open::Tool(item));
    }

    fn move_tool(&mut self, message: &str, events: &mut Vec<Event>) {
        if let Some(Open::Tool(item)) = &self.open {
            let event = fold_calls::progress(item, self.done.len(), message);
            self.tell(event, events);
        }
    }

    fn end_tool(&mut self, outcome: Result<String, String>, events: &mut Vec<Event>) {
        if let Some(Open::Tool(item)) = &mut self.open {
            match outcome {
                Ok(output) => item["output"] = json!(output),
                Err(error) => item["error"] = json!(error),
            }
            self.close("completed", events);
        }
    }

    fn tell_item(&mut self, what: &str, item: &Value, events: &mut Vec<Event>) {
        let kind = format!("response.output_item.{what}");
        let index = self.done.len();
        self.tell(
            json!({ "type": kind, "output_index": index, "item": item }),
            events,
        );
    }

    fn finish(&mut self, mut item: Value, status: &str, events: &mut Vec<Event>) {
        item["status"] = json!(status);
        self.tell_item("done", &item, events);
        self.done.push(item);
    }

    fn open_item(&mut self, kind: Kind, events: &mut Vec<Event>) {
        let writing = Writing::new(kind);
        let item = self.voice.signed(writing.item("in_progress"));
        self.tell_item("added", &item, events);
        self.tell(writing.part_added(self.done.len()), events);
        self.open = Some(Open::Text(writing));
    }

    fn close(&mut self, status: &str, events: &mut Vec<Event>) {
        let index = self.done.len();
        match self.open.take() {
            None => {}
            Some(Open::Tool(item)) => {
                if let Some(event) = fold_calls::outcome(&item, index) {
                    self.tell(event, events);
                }
                self.finish(item, status, events);
            }
            Some(Open::Text(mut writing)) => {
                for event in writing.end_part(index) {
                    self.tell(event, events);
                }
                let item = self.voice.signed(writing.item(status));
                self.finish(item, status, events);
            }
        }
    }

    fn end(&mut self, ending: Ending, events: &mut Vec<Event>) {
        let (status, item_status, kind) = match &ending.how {
            How::Completed => (Status::Completed, "completed", "response.completed"),
            How::Incomplete(_) => (Status::Incomplete, "incomplete", "response.incomplete"),
            How::Failed(_) => (Status::Failed, "incomplete", "response.failed"),
            How::Cancelled => (Status::Cancelled, "incomplete", "response.incomplete"),
        };
        if ending.how == How::Completed {
            self.say_something(events);
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

    /// Whether whoever speaks has answered after the last tool of ours.
    fn has_answer(&self) -> bool {
        let since = self.voice.own(&self.done).iter().rev();
        let mut since = since.take_while(|it| !fold_calls::is_receipt(it));
        let is_said = matches!(&self.open, Some(Open::Text(writing)) if writing.is_said());
        is_said || since.any(fold_calls::is_answer)
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
                self.voice.take_back(item, self.done.len());
                self.open = Some(match Writing::begun(item) {
                    Some(writing) => Open::Text(writing),
                    None => Open::Tool(item.clone()),
                });
            }
            "response.mcp_call_arguments.done" => {
                if let Some(Open::Tool(item)) = &mut self.open {
                    item["arguments"] = event["arguments"].clone();
                }
            }
            "response.output_item.done" => {
                self.open = None;
                self.done.push(event["item"].clone());
            }
            _ => {
                if let Some(Open::Text(writing)) = &mut self.open {
                    writing.take_back(event);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "fold_property_tests.rs"]
mod property_tests;
