//! The fold: turns engine events into a response object and its stream of events.
//!
//! **Invariant:** the blocking result, GET, the last event and a replay are all states of this
//! fold, so they cannot differ. Sequence numbers begin at 0 without gaps, the events of two items
//! never interleave, there is exactly one terminal event, and the deltas of a part in order are its
//! text. Pure except for new ids.

use std::mem;

use serde_json::{Value, json};

use crate::fold::engine_event::{Completeness, EngineEvent, ResponseEnd, ResponseOutcome};
use crate::fold::fold_calls;
use crate::fold::fold_calls::CallItem;
use crate::fold::fold_speaker::SpeakerTag;
use crate::fold::fold_text::{OpenText, TextKind};
use crate::response::{ResponseHeader, ResponseState, document};
use crate::status::ResponseStatus;

/// One numbered, serialized event; it is not changed any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEvent {
    pub seq: i64,
    pub kind: String,
    pub json: String,
}

impl StreamEvent {
    /// Returns whether this is the last event of a stream.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "response.completed" | "response.incomplete" | "response.failed"
        )
    }
}

/// A response while it is built.
#[derive(Clone, Debug)]
pub struct Fold {
    header: ResponseHeader,
    state: ResponseState,
    next_seq: i64,
    finished_items: Vec<Value>,
    current: Option<OpenItem>,
    /// The logprobs of the next text delta.
    logprobs: Vec<Value>,
    speaker: SpeakerTag,
}

/// The item that is being written.
#[derive(Clone, Debug)]
enum OpenItem {
    Text(OpenText),
    /// A server-side tool is running.
    Tool(Value),
}

impl Fold {
    /// Creates a fold without events. `status` is queued or in progress.
    pub fn new(header: ResponseHeader, status: ResponseStatus) -> Self {
        Self {
            header,
            state: ResponseState::new(status),
            next_seq: 0,
            finished_items: Vec::new(),
            current: None,
            logprobs: Vec::new(),
            speaker: SpeakerTag::default(),
        }
    }

    /// Restores the fold that emitted these events, to continue from it. Unknown events are
    /// ignored.
    pub fn replay(header: ResponseHeader, status: ResponseStatus, events: &[Value]) -> Self {
        let mut fold = Self::new(header, status);
        for event in events {
            fold.restore(event);
        }
        fold
    }

    /// Returns the response object; open items are not in it.
    pub fn document(&self) -> Value {
        document(&self.header, &self.state, &self.finished_items)
    }

    /// Returns the finished items in order.
    pub fn items(&self) -> &[Value] {
        &self.finished_items
    }

    /// Returns the state of the response.
    pub fn state(&self) -> &ResponseState {
        &self.state
    }

    /// Returns whether any output was emitted.
    pub fn has_output(&self) -> bool {
        self.current.is_some() || !self.finished_items.is_empty()
    }

    /// Applies an event and returns the stream events for it. After the end, events are ignored.
    pub fn apply(&mut self, event: EngineEvent) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if self.state.status.is_final() {
            return events;
        }
        match event {
            EngineEvent::Created => {
                self.emit_state("response.created", &mut events);
                if self.state.status == ResponseStatus::Queued {
                    self.emit_state("response.queued", &mut events);
                }
            }
            EngineEvent::Started => {
                self.state.status = ResponseStatus::InProgress;
                self.emit_state("response.in_progress", &mut events);
            }
            EngineEvent::SpeakerChanged(speaker) => self.change_speaker(speaker, &mut events),
            EngineEvent::ReasoningDelta(text) => {
                self.write_text(TextKind::Reasoning, &text, &mut events)
            }
            EngineEvent::TextDelta(text) => self.write_text(TextKind::Text, &text, &mut events),
            EngineEvent::Annotation(citation) => self.add_annotation(citation),
            EngineEvent::Logprobs(logprobs) => self.logprobs.extend(logprobs),
            EngineEvent::RefusalDelta(text) => {
                self.write_text(TextKind::Refusal, &text, &mut events)
            }
            EngineEvent::ClientToolCall(call, cut) => self.add_client_call(&call, cut, &mut events),
            EngineEvent::ToolStarted(call) => self.start_tool(&call, &mut events),
            EngineEvent::ToolProgress(message) => self.report_tool_progress(&message, &mut events),
            EngineEvent::ToolFinished(outcome) => self.finish_tool(outcome, &mut events),
            EngineEvent::NextIteration => self.close_item("completed", &mut events),
            EngineEvent::Finished(ending) => self.finish_response(ending, &mut events),
        }
        events
    }

    fn change_speaker(&mut self, speaker: Value, events: &mut Vec<StreamEvent>) {
        if self.speaker.has_speaker() {
            self.ensure_text(events);
        }
        self.close_item("completed", events);
        self.speaker.set(speaker, self.finished_items.len());
    }

    /// Starts an empty text if there is no answer: a model that stops immediately answered with
    /// one.
    fn ensure_text(&mut self, events: &mut Vec<StreamEvent>) {
        if !self.has_answer() {
            self.close_item("completed", events);
            self.start_text(TextKind::Text, events);
        }
    }

    fn write_text(&mut self, kind: TextKind, text: &str, events: &mut Vec<StreamEvent>) {
        let index = self.finished_items.len();
        match &mut self.current {
            Some(OpenItem::Text(open_text)) if open_text.has_kind(kind) => {}
            Some(OpenItem::Text(writing)) if writing.can_contain(kind) => {
                for event in writing.switch_to(kind, index) {
                    self.emit(event, events);
                }
            }
            _ => {
                self.close_item("completed", events);
                self.start_text(kind, events);
            }
        }
        let index = self.finished_items.len();
        if let Some(OpenItem::Text(writing)) = &mut self.current {
            let delta = writing.push_delta(text, mem::take(&mut self.logprobs), index);
            self.emit(delta, events);
        }
    }

    fn add_annotation(&mut self, annotation: Value) {
        if let Some(OpenItem::Text(open_text)) = &mut self.current {
            open_text.add_annotation(annotation);
        }
    }

    fn add_client_call(
        &mut self,
        call: &CallItem,
        completeness: Completeness,
        events: &mut Vec<StreamEvent>,
    ) {
        self.start_tool(call, events);
        if let Some(OpenItem::Tool(item)) = self.current.take() {
            self.finish_item(item, completeness.status(), events);
        }
    }

    fn start_tool(&mut self, call: &CallItem, events: &mut Vec<StreamEvent>) {
        self.close_item("completed", events);
        let item = self
            .speaker
            .with_metadata(fold_calls::item(call, "in_progress"));
        self.emit_item("added", &fold_calls::initial_item(&item), events);
        for event in fold_calls::body_events(&item, self.finished_items.len()) {
            self.emit(event, events);
        }
        self.current = Some(OpenItem::Tool(item));
    }

    fn report_tool_progress(&mut self, message: &str, events: &mut Vec<StreamEvent>) {
        if let Some(OpenItem::Tool(item)) = &self.current {
            let event = fold_calls::progress_event(item, self.finished_items.len(), message);
            self.emit(event, events);
        }
    }

    fn finish_tool(&mut self, outcome: Result<String, String>, events: &mut Vec<StreamEvent>) {
        if let Some(OpenItem::Tool(item)) = &mut self.current {
            match outcome {
                Ok(output) => item["output"] = json!(output),
                Err(error) => item["error"] = json!(error),
            }
            self.close_item("completed", events);
        }
    }

    fn emit_item(&mut self, what: &str, item: &Value, events: &mut Vec<StreamEvent>) {
        let kind = format!("response.output_item.{what}");
        let index = self.finished_items.len();
        self.emit(
            json!({ "type": kind, "output_index": index, "item": item }),
            events,
        );
    }

    fn finish_item(&mut self, mut item: Value, status: &str, events: &mut Vec<StreamEvent>) {
        item["status"] = json!(status);
        self.emit_item("done", &item, events);
        self.finished_items.push(item);
    }

    fn start_text(&mut self, kind: TextKind, events: &mut Vec<StreamEvent>) {
        let open_text = OpenText::new(kind);
        let item = self.speaker.with_metadata(open_text.item("in_progress"));
        self.emit_item("added", &item, events);
        self.emit(open_text.part_added(self.finished_items.len()), events);
        self.current = Some(OpenItem::Text(open_text));
    }

    fn close_item(&mut self, status: &str, events: &mut Vec<StreamEvent>) {
        let index = self.finished_items.len();
        match self.current.take() {
            None => {}
            Some(OpenItem::Tool(item)) => {
                if let Some(event) = fold_calls::outcome_event(&item, index) {
                    self.emit(event, events);
                }
                self.finish_item(item, status, events);
            }
            Some(OpenItem::Text(mut open_text)) => {
                for event in open_text.end_part(index) {
                    self.emit(event, events);
                }
                let item = self.speaker.with_metadata(open_text.item(status));
                self.finish_item(item, status, events);
            }
        }
    }

    fn finish_response(&mut self, end: ResponseEnd, events: &mut Vec<StreamEvent>) {
        let (status, item_status, kind) = match &end.outcome {
            ResponseOutcome::Completed => {
                (ResponseStatus::Completed, "completed", "response.completed")
            }
            ResponseOutcome::Incomplete(_) => (
                ResponseStatus::Incomplete,
                "incomplete",
                "response.incomplete",
            ),
            ResponseOutcome::Failed(_) => (ResponseStatus::Failed, "incomplete", "response.failed"),
            ResponseOutcome::Cancelled => (
                ResponseStatus::Cancelled,
                "incomplete",
                "response.incomplete",
            ),
        };
        if end.outcome == ResponseOutcome::Completed {
            self.ensure_text(events);
        }
        self.close_item(item_status, events);
        self.state = ResponseState {
            status,
            incomplete_reason: match &end.outcome {
                ResponseOutcome::Incomplete(reason) => Some((*reason).to_owned()),
                ResponseOutcome::Cancelled => Some("cancelled".to_owned()),
                ResponseOutcome::Completed | ResponseOutcome::Failed(_) => None,
            },
            error: match end.outcome {
                ResponseOutcome::Failed(trouble) => Some(trouble),
                _ => None,
            },
            usage: end.usage,
            ended_at: Some(end.at),
        };
        self.emit_state(kind, events);
    }

    /// Returns whether the current speaker has answered after its last server-side tool.
    fn has_answer(&self) -> bool {
        let since = self.speaker.own_items(&self.finished_items).iter().rev();
        let mut since = since.take_while(|it| !fold_calls::is_server_tool_item(it));
        let is_said =
            matches!(&self.current, Some(OpenItem::Text(writing)) if writing.is_message());
        is_said || since.any(fold_calls::is_answer)
    }

    fn emit_state(&mut self, kind: &str, events: &mut Vec<StreamEvent>) {
        let event = json!({ "type": kind, "response": self.document() });
        self.emit(event, events);
    }

    fn emit(&mut self, mut event: Value, events: &mut Vec<StreamEvent>) {
        let seq = self.next_seq;
        self.next_seq += 1;
        event["sequence_number"] = json!(seq);
        events.push(StreamEvent {
            seq,
            kind: event["type"].as_str().unwrap_or_default().to_owned(),
            json: event.to_string(),
        });
    }

    /// Restores the state after an event that was emitted earlier.
    fn restore(&mut self, event: &Value) {
        self.next_seq = event["sequence_number"].as_i64().unwrap_or_default() + 1;
        match event["type"].as_str().unwrap_or_default() {
            "response.in_progress" => self.state.status = ResponseStatus::InProgress,
            "response.output_item.added" => {
                let item = &event["item"];
                self.speaker.restore(item, self.finished_items.len());
                self.current = Some(match OpenText::from_item(item) {
                    Some(writing) => OpenItem::Text(writing),
                    None => OpenItem::Tool(item.clone()),
                });
            }
            "response.mcp_call_arguments.done" => {
                if let Some(OpenItem::Tool(item)) = &mut self.current {
                    item["arguments"] = event["arguments"].clone();
                }
            }
            "response.output_item.done" => {
                self.current = None;
                self.finished_items.push(event["item"].clone());
            }
            _ => {
                if let Some(OpenItem::Text(writing)) = &mut self.current {
                    writing.restore(event);
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

#[cfg(test)]
#[path = "event_json_tests.rs"]
mod event_json_tests;
