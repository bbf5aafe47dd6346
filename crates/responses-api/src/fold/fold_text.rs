//! Builds the stream events of message and reasoning items, part by part, and restores an
//! unfinished item from the events that were already emitted. No I/O.

use std::mem;

use serde_json::Value;

use crate::event::{
    AnnotationAdded, ContentDelta, ContentPartEvent, ContentPosition, OutputTextDelta,
    OutputTextDone, RefusalDone, StreamEvent, SummaryPartEvent, SummaryPosition, SummaryTextDelta,
    SummaryTextDone,
};
use crate::item::{
    ContentPart, ItemBody, OutputItem, OutputMessage, OutputReasoning, OutputRole, SealedReasoning,
};
use crate::object_ids;
use crate::status::ItemStatus;

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
}

/// An item that is being written: finished parts and the open one.
#[derive(Clone, Debug)]
pub struct OpenText {
    id: String,
    kind: TextKind,
    done: Vec<ContentPart>,
    text: String,
    /// The logprobs of the text so far, if known.
    logprobs: Vec<Value>,
    /// Citations; emitted when the part ends.
    annotations: Vec<Value>,
    /// The encrypted reasoning, if this item is complete; text that follows belongs to another item.
    sealed: Option<SealedReasoning>,
}

impl OpenText {
    /// Creates an item whose first part is of this kind, without emitting events.
    pub fn new(kind: TextKind) -> Self {
        Self::with_id(object_ids::generate(kind.prefix()), kind)
    }

    fn with_id(id: String, kind: TextKind) -> Self {
        Self {
            id,
            kind,
            done: Vec::new(),
            text: String::new(),
            logprobs: Vec::new(),
            annotations: Vec::new(),
            sealed: None,
        }
    }

    /// Completes the item with its encrypted reasoning. Returns the reasoning if the item is a message, or
    /// is already complete.
    pub fn seal(&mut self, sealed: SealedReasoning) -> Option<SealedReasoning> {
        if self.is_message() || self.sealed.is_some() {
            return Some(sealed);
        }
        self.sealed = Some(sealed);
        None
    }

    /// Restores an item from its `added` event. Returns `None` if it is not a text item.
    pub fn from_item(item: &OutputItem) -> Option<Self> {
        let kind = match item.body {
            ItemBody::Message(_) => TextKind::Text,
            ItemBody::Reasoning(_) => TextKind::Reasoning,
            _ => return None,
        };
        Some(Self::with_id(item.id.clone(), kind))
    }

    /// Restores the state after an event of this item that was emitted earlier.
    pub fn restore(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::ContentPartAdded(event) => {
                self.kind = match event.part {
                    ContentPart::Refusal { .. } => TextKind::Refusal,
                    _ => TextKind::Text,
                };
            }
            StreamEvent::OutputTextDelta(event) => {
                self.text.push_str(&event.delta);
                self.logprobs.extend(event.logprobs);
            }
            StreamEvent::RefusalDelta(event) => self.text.push_str(&event.delta),
            StreamEvent::SummaryTextDelta(event) => self.text.push_str(&event.delta),
            StreamEvent::ContentPartDone(event) => {
                self.done.push(event.part);
                (self.text, self.logprobs) = Default::default();
            }
            _ => {}
        }
    }

    /// Returns whether the open part is of this kind and may get more text.
    pub fn has_kind(&self, kind: TextKind) -> bool {
        self.kind == kind && self.sealed.is_none()
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
    pub fn item(&self, status: ItemStatus) -> OutputItem {
        let parts = self.done.clone();
        let body = match self.is_message() {
            true => ItemBody::Message(OutputMessage {
                status,
                role: OutputRole::Assistant,
                content: parts,
            }),
            false => ItemBody::Reasoning(OutputReasoning {
                status,
                summary: parts,
                encrypted_content: self.sealed.clone(),
            }),
        };
        OutputItem {
            id: self.id.clone(),
            body,
            metadata: None,
        }
    }

    /// Ends the open part and begins one of another kind.
    pub fn switch_to(&mut self, kind: TextKind, index: usize) -> Vec<StreamEvent> {
        let mut events = self.end_part(index);
        self.kind = kind;
        events.push(self.part_added(index));
        events
    }

    /// Returns the event that begins the open part.
    pub fn part_added(&self, index: usize) -> StreamEvent {
        let part = self.part(String::new(), Vec::new(), Vec::new());
        let (in_message, in_reasoning) =
            (StreamEvent::ContentPartAdded, StreamEvent::SummaryPartAdded);
        self.part_event(part, index, in_message, in_reasoning)
    }

    /// Appends text with its logprobs and returns the delta event.
    pub fn push_delta(&mut self, text: &str, logprobs: Vec<Value>, index: usize) -> StreamEvent {
        self.text.push_str(text);
        let delta = text.to_owned();
        match self.kind {
            TextKind::Text => {
                self.logprobs.extend(logprobs.iter().cloned());
                let at = self.content_position(index);
                StreamEvent::OutputTextDelta(OutputTextDelta {
                    at,
                    delta,
                    logprobs,
                })
            }
            TextKind::Refusal => {
                let at = self.content_position(index);
                StreamEvent::RefusalDelta(ContentDelta { at, delta })
            }
            TextKind::Reasoning => {
                let at = self.summary_position(index);
                StreamEvent::SummaryTextDelta(SummaryTextDelta { at, delta })
            }
        }
    }

    /// Adds a citation; only text parts have citations.
    pub fn add_annotation(&mut self, annotation: Value) {
        if self.kind == TextKind::Text {
            self.annotations.push(annotation);
        }
    }

    /// Ends the open part and returns its closing events.
    pub fn end_part(&mut self, index: usize) -> Vec<StreamEvent> {
        let (text, logprobs, annotations) = (
            mem::take(&mut self.text),
            mem::take(&mut self.logprobs),
            mem::take(&mut self.annotations),
        );
        let cited = annotations.iter().zip(0..);
        let cited = cited.map(|(annotation, annotation_index)| {
            StreamEvent::AnnotationAdded(AnnotationAdded {
                at: self.content_position(index),
                annotation: annotation.clone(),
                annotation_index,
            })
        });
        let mut events: Vec<StreamEvent> = cited.collect();
        events.push(self.text_done(text.clone(), &logprobs, index));
        let part = self.part(text, annotations, logprobs);
        let (in_message, in_reasoning) =
            (StreamEvent::ContentPartDone, StreamEvent::SummaryPartDone);
        events.push(self.part_event(part.clone(), index, in_message, in_reasoning));
        self.done.push(part);
        events
    }

    fn text_done(&self, text: String, logprobs: &[Value], index: usize) -> StreamEvent {
        match self.kind {
            TextKind::Text => StreamEvent::OutputTextDone(OutputTextDone {
                at: self.content_position(index),
                text,
                logprobs: logprobs.to_vec(),
            }),
            TextKind::Refusal => StreamEvent::RefusalDone(RefusalDone {
                at: self.content_position(index),
                refusal: text,
            }),
            TextKind::Reasoning => StreamEvent::SummaryTextDone(SummaryTextDone {
                at: self.summary_position(index),
                text,
            }),
        }
    }

    fn part_event(
        &self,
        part: ContentPart,
        index: usize,
        in_message: impl Fn(ContentPartEvent) -> StreamEvent,
        in_reasoning: impl Fn(SummaryPartEvent) -> StreamEvent,
    ) -> StreamEvent {
        match self.is_message() {
            true => in_message(ContentPartEvent {
                at: self.content_position(index),
                part,
            }),
            false => in_reasoning(SummaryPartEvent {
                at: self.summary_position(index),
                part,
            }),
        }
    }

    /// Returns a part of the open kind; only text parts have annotations and logprobs.
    fn part(&self, text: String, annotations: Vec<Value>, logprobs: Vec<Value>) -> ContentPart {
        match self.kind {
            TextKind::Text => ContentPart::OutputText {
                text,
                annotations,
                logprobs,
            },
            TextKind::Refusal => ContentPart::Refusal { refusal: text },
            TextKind::Reasoning => ContentPart::SummaryText { text },
        }
    }

    fn content_position(&self, index: usize) -> ContentPosition {
        ContentPosition {
            item_id: self.id.clone(),
            output_index: index,
            content_index: self.done.len(),
        }
    }

    fn summary_position(&self, index: usize) -> SummaryPosition {
        SummaryPosition {
            item_id: self.id.clone(),
            output_index: index,
            summary_index: self.done.len(),
        }
    }
}
