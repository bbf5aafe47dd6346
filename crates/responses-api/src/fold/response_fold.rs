//! The fold: applies the events of a response task to a response object, and returns the stream
//! events that result. It can be restored from earlier stream events.
//!
//! **Invariant:** the blocking result, GET, the last event and a replay are all states of this
//! fold, so they cannot differ. Sequence numbers begin at 0 without gaps, the events of two items
//! never interleave, there is exactly one terminal event, and the deltas of a part in order are its
//! text. No I/O; everything except new ids follows from the input.

use std::mem;

use serde_json::Value;

use crate::event::{EncodedEvent, ItemEvent, ResponseEvent, SequencedEvent, StreamEvent};
use crate::fold::engine_event::{Completeness, EngineEvent, ResponseEnd, ResponseOutcome};
use crate::fold::fold_calls;
use crate::fold::fold_text::{OpenText, TextKind};
use crate::fold::speaker_tag::SpeakerTag;
use crate::item::{ItemBody, OutputItem, OutputReasoning, SealedReasoning};
use crate::response::{Response, ResponseHeader, ResponseState};
use crate::status::{ItemStatus, ResponseStatus};

/// A response while it is built.
#[derive(Clone, Debug)]
pub struct Fold {
    header: ResponseHeader,
    state: ResponseState,
    next_seq: i64,
    finished_items: Vec<OutputItem>,
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
    Tool(Box<OutputItem>),
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

    /// Restores the fold that emitted these events, to continue from it. They must contain all
    /// events of each [`Self::apply`], which are stored together. Unknown events are ignored.
    pub fn replay(
        header: ResponseHeader,
        status: ResponseStatus,
        events: Vec<SequencedEvent>,
    ) -> Self {
        let mut fold = Self::new(header, status);
        for event in events {
            fold.restore(event);
        }
        fold
    }

    /// Returns the response object; open items are not in it.
    pub fn document(&self) -> Response {
        Response::new(&self.header, &self.state, self.finished_items.clone())
    }

    /// Returns the finished items in order.
    pub fn items(&self) -> &[OutputItem] {
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
    pub fn apply(&mut self, event: EngineEvent) -> Vec<EncodedEvent> {
        let mut events = Vec::new();
        if self.state.status.is_final() {
            return events;
        }
        match event {
            EngineEvent::Created => {
                self.emit_state(StreamEvent::Created, &mut events);
                if self.state.status == ResponseStatus::Queued {
                    self.emit_state(StreamEvent::Queued, &mut events);
                }
            }
            EngineEvent::Started => {
                self.state.status = ResponseStatus::InProgress;
                self.emit_state(StreamEvent::InProgress, &mut events);
            }
            EngineEvent::SpeakerChanged(speaker) => self.change_speaker(speaker, &mut events),
            EngineEvent::ReasoningDelta(text) => {
                self.write_text(TextKind::Reasoning, &text, &mut events)
            }
            EngineEvent::ReasoningSealed(sealed) => self.seal_reasoning(sealed, &mut events),
            EngineEvent::TextDelta(text) => self.write_text(TextKind::Text, &text, &mut events),
            EngineEvent::Annotation(citation) => self.add_annotation(citation),
            EngineEvent::Logprobs(logprobs) => self.logprobs.extend(logprobs),
            EngineEvent::ModelCallEnded(_) => {}
            EngineEvent::RefusalDelta(text) => {
                self.write_text(TextKind::Refusal, &text, &mut events)
            }
            EngineEvent::ClientToolCall(call, cut) => self.add_client_call(call, cut, &mut events),
            EngineEvent::ToolStarted(call) => self.start_tool(call, &mut events),
            EngineEvent::ToolProgress(message) => self.report_tool_progress(&message, &mut events),
            EngineEvent::ToolFinished(outcome) => self.finish_tool(outcome, &mut events),
            EngineEvent::NextIteration => self.close_item(ItemStatus::Completed, &mut events),
            EngineEvent::Finished(ending) => self.finish_response(ending, &mut events),
        }
        events
    }

    fn change_speaker(&mut self, speaker: Value, events: &mut Vec<EncodedEvent>) {
        if self.speaker.has_speaker() {
            self.ensure_text(events);
        }
        self.close_item(ItemStatus::Completed, events);
        self.speaker.set(speaker, self.finished_items.len());
    }

    /// Starts an empty text if there is no answer: a model that stops immediately answered with
    /// one.
    fn ensure_text(&mut self, events: &mut Vec<EncodedEvent>) {
        if !self.has_answer() {
            self.close_item(ItemStatus::Completed, events);
            self.start_text(TextKind::Text, events);
        }
    }

    fn write_text(&mut self, kind: TextKind, text: &str, events: &mut Vec<EncodedEvent>) {
        let index = self.finished_items.len();
        match &mut self.current {
            Some(OpenItem::Text(open_text)) if open_text.has_kind(kind) => {}
            Some(OpenItem::Text(writing)) if writing.can_contain(kind) => {
                for event in writing.switch_to(kind, index) {
                    self.emit(event, events);
                }
            }
            _ => {
                self.close_item(ItemStatus::Completed, events);
                self.start_text(kind, events);
            }
        }
        let index = self.finished_items.len();
        if let Some(OpenItem::Text(writing)) = &mut self.current {
            let delta = writing.push_delta(text, mem::take(&mut self.logprobs), index);
            self.emit(delta, events);
        }
    }

    /// Completes the open reasoning. If there is none, the reasoning has no readable text and becomes
    /// an item of its own.
    fn seal_reasoning(&mut self, sealed: SealedReasoning, events: &mut Vec<EncodedEvent>) {
        let sealed = match &mut self.current {
            Some(OpenItem::Text(open_text)) => open_text.seal(sealed),
            _ => Some(sealed),
        };
        let Some(sealed) = sealed else {
            return;
        };
        self.close_item(ItemStatus::Completed, events);
        let reasoning = |encrypted_content| OutputReasoning {
            status: ItemStatus::InProgress,
            summary: Vec::new(),
            encrypted_content,
        };
        let item = OutputItem::new(ItemBody::Reasoning(reasoning(None)));
        let mut item = self.speaker.with_metadata(item);
        self.emit_item(StreamEvent::ItemAdded, item.clone(), events);
        item.body = ItemBody::Reasoning(reasoning(Some(sealed)));
        self.finish_item(item, ItemStatus::Completed, events);
    }

    fn add_annotation(&mut self, annotation: Value) {
        if let Some(OpenItem::Text(open_text)) = &mut self.current {
            open_text.add_annotation(annotation);
        }
    }

    fn add_client_call(
        &mut self,
        call: ItemBody,
        completeness: Completeness,
        events: &mut Vec<EncodedEvent>,
    ) {
        self.start_tool(call, events);
        if let Some(OpenItem::Tool(item)) = self.current.take() {
            self.finish_item(*item, completeness.status(), events);
        }
    }

    fn start_tool(&mut self, call: ItemBody, events: &mut Vec<EncodedEvent>) {
        self.close_item(ItemStatus::Completed, events);
        let mut item = self.speaker.with_metadata(OutputItem::new(call));
        item.body.set_status(ItemStatus::InProgress);
        self.emit_item(
            StreamEvent::ItemAdded,
            fold_calls::initial_item(&item),
            events,
        );
        for event in fold_calls::body_events(&item, self.finished_items.len()) {
            self.emit(event, events);
        }
        self.current = Some(OpenItem::Tool(Box::new(item)));
    }

    fn report_tool_progress(&mut self, message: &str, events: &mut Vec<EncodedEvent>) {
        if let Some(OpenItem::Tool(item)) = &self.current {
            let event = fold_calls::progress_event(item, self.finished_items.len(), message);
            self.emit(event, events);
        }
    }

    fn finish_tool(&mut self, outcome: Result<String, String>, events: &mut Vec<EncodedEvent>) {
        if let Some(OpenItem::Tool(item)) = &mut self.current {
            item.body.set_result(outcome);
            self.close_item(ItemStatus::Completed, events);
        }
    }

    fn emit_item(
        &mut self,
        event: impl Fn(ItemEvent) -> StreamEvent,
        item: OutputItem,
        events: &mut Vec<EncodedEvent>,
    ) {
        let output_index = self.finished_items.len();
        self.emit(event(ItemEvent { output_index, item }), events);
    }

    fn finish_item(
        &mut self,
        mut item: OutputItem,
        status: ItemStatus,
        events: &mut Vec<EncodedEvent>,
    ) {
        item.body.set_status(status);
        self.emit_item(StreamEvent::ItemDone, item.clone(), events);
        self.finished_items.push(item);
    }

    fn start_text(&mut self, kind: TextKind, events: &mut Vec<EncodedEvent>) {
        let open_text = OpenText::new(kind);
        let item = self
            .speaker
            .with_metadata(open_text.item(ItemStatus::InProgress));
        self.emit_item(StreamEvent::ItemAdded, item, events);
        self.emit(open_text.part_added(self.finished_items.len()), events);
        self.current = Some(OpenItem::Text(open_text));
    }

    fn close_item(&mut self, status: ItemStatus, events: &mut Vec<EncodedEvent>) {
        let index = self.finished_items.len();
        match self.current.take() {
            None => {}
            Some(OpenItem::Tool(item)) => {
                if let Some(event) = fold_calls::outcome_event(&item, index, status) {
                    self.emit(event, events);
                }
                self.finish_item(*item, status, events);
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

    fn finish_response(&mut self, end: ResponseEnd, events: &mut Vec<EncodedEvent>) {
        let (item_status, event): (_, fn(ResponseEvent) -> StreamEvent) = match &end.outcome {
            ResponseOutcome::Completed => (ItemStatus::Completed, StreamEvent::Completed),
            ResponseOutcome::Failed(_) => (ItemStatus::Incomplete, StreamEvent::Failed),
            ResponseOutcome::Incomplete(_) | ResponseOutcome::Cancelled => {
                (ItemStatus::Incomplete, StreamEvent::Incomplete)
            }
        };
        if end.outcome == ResponseOutcome::Completed {
            self.ensure_text(events);
        }
        self.close_item(item_status, events);
        self.state = ResponseState {
            status: end.outcome.status(),
            incomplete_reason: end.outcome.incomplete_reason(),
            error: match end.outcome {
                ResponseOutcome::Failed(trouble) => Some(trouble),
                _ => None,
            },
            usage: end.usage,
            ended_at: Some(end.at),
        };
        self.emit_state(event, events);
    }

    /// Returns whether the current speaker has answered after its last server-side tool.
    fn has_answer(&self) -> bool {
        let since = self.speaker.own_items(&self.finished_items).iter().rev();
        let mut since = since.take_while(|it| !it.body.is_server_call());
        let is_said =
            matches!(&self.current, Some(OpenItem::Text(writing)) if writing.is_message());
        is_said || since.any(|it| it.body.is_answer())
    }

    fn emit_state(
        &mut self,
        event: impl Fn(ResponseEvent) -> StreamEvent,
        events: &mut Vec<EncodedEvent>,
    ) {
        let response = self.document();
        self.emit(event(ResponseEvent { response }), events);
    }

    fn emit(&mut self, event: StreamEvent, events: &mut Vec<EncodedEvent>) {
        events.push(EncodedEvent::encode(event, self.next_seq));
        self.next_seq += 1;
    }

    /// Restores the state after an event that was emitted earlier.
    fn restore(&mut self, event: SequencedEvent) {
        self.next_seq = event.sequence_number + 1;
        match (event.event, &mut self.current) {
            (StreamEvent::InProgress(_), _) => self.state.status = ResponseStatus::InProgress,
            (StreamEvent::ItemAdded(ItemEvent { item, .. }), _) => {
                self.speaker.restore(&item, self.finished_items.len());
                self.current = Some(match OpenText::from_item(&item) {
                    Some(writing) => OpenItem::Text(writing),
                    None => OpenItem::Tool(Box::new(item)),
                });
            }
            (StreamEvent::McpArgumentsDone(event), Some(OpenItem::Tool(item))) => {
                if let ItemBody::McpCall(call) = &mut item.body {
                    call.arguments = event.arguments;
                }
            }
            (StreamEvent::ItemDone(event), _) => {
                self.current = None;
                self.finished_items.push(event.item);
            }
            (event, Some(OpenItem::Text(writing))) => writing.restore(event),
            _ => {}
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
