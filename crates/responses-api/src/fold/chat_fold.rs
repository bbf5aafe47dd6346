//! The chat fold: applies the events of a response task to one choice of a chat completion, and
//! returns the chunks of its stream.
//!
//! **Invariant:** the chunks together contain the same message as the complete answer. The first chunk is
//! sent with the first output, so a failure before the first output sends nothing. No I/O.

use std::mem;

use serde_json::Value;

use crate::event::EncodedEvent;
use crate::fold::chat_objects::{
    CallDelta, ChatCall, ChatCallInput, ChatChoice, ChatCustom, ChatDelta, ChatFinishReason,
    ChatFunction, ChatLogprobs, ChunkChoice, CompletionHeader, CompletionMessage,
};
use crate::fold::engine_event::{EngineEvent, ResponseEnd, ResponseOutcome};
use crate::item::ItemBody;
use crate::response::{ResponseError, ResponseState};
use crate::status::ResponseStatus;

/// The kind of the events of this fold.
const CHUNK: &str = "chunk";

const ASSISTANT: &str = "assistant";

/// A choice of a chat completion while it is built.
#[derive(Clone, Debug)]
pub struct ChatFold {
    header: CompletionHeader,
    /// The position of the choice.
    index: usize,
    state: ResponseState,
    next_seq: i64,
    /// Whether the first chunk was sent.
    has_begun: bool,
    text: String,
    refusal: String,
    reasoning: String,
    calls: Vec<ChatCall>,
    annotations: Vec<Value>,
    logprobs: Vec<Value>,
    /// The logprobs of the next text delta.
    next_logprobs: Vec<Value>,
    speaker: Option<Value>,
}

impl ChatFold {
    /// Creates a fold without events.
    pub fn new(header: CompletionHeader, index: usize) -> Self {
        Self {
            header,
            index,
            state: ResponseState::new(ResponseStatus::InProgress),
            next_seq: 0,
            has_begun: false,
            text: String::new(),
            refusal: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            annotations: Vec::new(),
            logprobs: Vec::new(),
            next_logprobs: Vec::new(),
            speaker: None,
        }
    }

    /// Returns the present state.
    pub fn state(&self) -> &ResponseState {
        &self.state
    }

    /// Returns whether any output was emitted.
    pub fn has_output(&self) -> bool {
        self.has_begun
    }

    /// Returns why the choice has no answer.
    pub fn failure(&self) -> Option<ResponseError> {
        let cancelled = || ResponseError {
            code: "cancelled".to_owned(),
            message: "The request was cancelled.".to_owned(),
        };
        let is_cancelled = self.state.status == ResponseStatus::Cancelled;
        let error = self.state.error.clone();
        error.or_else(|| is_cancelled.then(cancelled))
    }

    /// Returns the complete choice.
    ///
    /// # Errors
    /// Returns the failure if the model failed or the request was canceled.
    pub fn into_choice(self) -> Result<ChatChoice, ResponseError> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        let finish_reason = self.chat_finish_reason();
        let has_text = !self.text.is_empty();
        let has_other = !self.calls.is_empty() || !self.refusal.is_empty();
        let text_or_none = |text: String| (!text.is_empty()).then_some(text);
        let message = CompletionMessage {
            role: ASSISTANT,
            content: (has_text || !has_other).then_some(self.text),
            refusal: text_or_none(self.refusal),
            reasoning_content: text_or_none(self.reasoning),
            tool_calls: self.calls,
            annotations: self.annotations,
            troupe: self.speaker,
        };
        Ok(ChatChoice {
            index: self.index,
            message,
            logprobs: ChatLogprobs::of(self.logprobs),
            finish_reason,
        })
    }

    /// Applies an event and returns the chunks for it. After the end, events are ignored.
    pub fn apply(&mut self, event: EngineEvent) -> Vec<EncodedEvent> {
        let mut chunks = Vec::new();
        if self.state.status.is_final() {
            return chunks;
        }
        match event {
            EngineEvent::SpeakerChanged(speaker) => self.speaker = Some(speaker),
            EngineEvent::ReasoningDelta(text) => {
                self.reasoning.push_str(&text);
                let delta = ChatDelta {
                    reasoning_content: Some(text),
                    ..ChatDelta::default()
                };
                self.emit_delta(delta, &mut chunks);
            }
            EngineEvent::TextDelta(text) => {
                self.text.push_str(&text);
                let delta = ChatDelta {
                    content: Some(text),
                    ..ChatDelta::default()
                };
                self.emit_delta(delta, &mut chunks);
            }
            EngineEvent::RefusalDelta(text) => {
                self.refusal.push_str(&text);
                let delta = ChatDelta {
                    refusal: Some(text),
                    ..ChatDelta::default()
                };
                self.emit_delta(delta, &mut chunks);
            }
            EngineEvent::Logprobs(logprobs) => self.next_logprobs.extend(logprobs),
            EngineEvent::Annotation(citation) => {
                self.annotations.push(citation.clone());
                let delta = ChatDelta {
                    annotations: vec![citation],
                    ..ChatDelta::default()
                };
                self.emit_delta(delta, &mut chunks);
            }
            EngineEvent::ClientToolCall(call, _) => self.add_call(call, &mut chunks),
            EngineEvent::Finished(end) => self.finish(end, &mut chunks),
            // The answer does not contain what this server does between its parts, such as tool calls.
            EngineEvent::Created
            | EngineEvent::Started
            | EngineEvent::ModelCallEnded(_)
            | EngineEvent::NextIteration
            | EngineEvent::ReasoningSealed(_)
            | EngineEvent::ToolStarted(_)
            | EngineEvent::ToolProgress(_)
            | EngineEvent::ToolFinished(_) => {}
        }
        chunks
    }

    fn add_call(&mut self, call: ItemBody, chunks: &mut Vec<EncodedEvent>) {
        let Some(call) = chat_call(call) else {
            return;
        };
        for delta in call.deltas(self.calls.len()) {
            self.emit_call(delta, chunks);
        }
        self.calls.push(call);
    }

    fn emit_call(&mut self, call: CallDelta, chunks: &mut Vec<EncodedEvent>) {
        let delta = ChatDelta {
            tool_calls: vec![call],
            ..ChatDelta::default()
        };
        self.emit_delta(delta, chunks);
    }

    fn emit_delta(&mut self, delta: ChatDelta, chunks: &mut Vec<EncodedEvent>) {
        self.ensure_begun(chunks);
        let mut logprobs = Vec::new();
        if delta.content.is_some() {
            logprobs = mem::take(&mut self.next_logprobs);
            self.logprobs.extend(logprobs.iter().cloned());
        }
        self.emit_choice(delta, ChatLogprobs::of(logprobs), None, chunks);
    }

    /// Sends the first chunk, unless it was sent.
    fn ensure_begun(&mut self, chunks: &mut Vec<EncodedEvent>) {
        if mem::replace(&mut self.has_begun, true) {
            return;
        }
        let first = ChatDelta {
            role: Some(ASSISTANT),
            content: Some(String::new()),
            troupe: self.speaker.clone(),
            ..ChatDelta::default()
        };
        self.emit_choice(first, None, None, chunks);
    }

    fn finish(&mut self, end: ResponseEnd, chunks: &mut Vec<EncodedEvent>) {
        self.state = ResponseState {
            status: end.outcome.status(),
            incomplete_reason: end.outcome.incomplete_reason(),
            error: match end.outcome {
                ResponseOutcome::Failed(error) => Some(error),
                _ => None,
            },
            usage: end.usage,
            ended_at: Some(end.at),
        };
        if self.failure().is_some() {
            return;
        }
        self.ensure_begun(chunks);
        let finish_reason = self.chat_finish_reason();
        self.emit_choice(ChatDelta::default(), None, Some(finish_reason), chunks);
    }

    fn chat_finish_reason(&self) -> ChatFinishReason {
        match self.state.incomplete_reason.as_deref() {
            Some("content_filter") => ChatFinishReason::ContentFilter,
            Some(_) => ChatFinishReason::Length,
            None if !self.calls.is_empty() => ChatFinishReason::ToolCalls,
            None => ChatFinishReason::Stop,
        }
    }

    fn emit_choice(
        &mut self,
        delta: ChatDelta,
        logprobs: Option<ChatLogprobs>,
        finish_reason: Option<ChatFinishReason>,
        chunks: &mut Vec<EncodedEvent>,
    ) {
        let chunk = self.header.chunk(ChunkChoice {
            index: self.index,
            delta,
            logprobs,
            finish_reason,
        });
        chunks.push(EncodedEvent {
            seq: self.next_seq,
            kind: CHUNK.to_owned(),
            json: serde_json::to_string(&chunk).expect("a chunk is an object with text keys"),
        });
        self.next_seq += 1;
    }
}

/// Returns a call as the client sees it; `None` for other items.
fn chat_call(item: ItemBody) -> Option<ChatCall> {
    match item {
        ItemBody::FunctionCall(call) => Some(ChatCall {
            id: call.call_id,
            input: ChatCallInput::Function {
                function: ChatFunction {
                    name: Some(call.name),
                    arguments: call.arguments,
                },
            },
        }),
        ItemBody::CustomToolCall(call) => Some(ChatCall {
            id: call.call_id,
            input: ChatCallInput::Custom {
                custom: ChatCustom {
                    name: Some(call.name),
                    input: call.input,
                },
            },
        }),
        _ => None,
    }
}

#[cfg(test)]
#[path = "chat_fold_tests.rs"]
mod tests;
