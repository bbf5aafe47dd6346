//! Writes the steps and messages of a run, with the stream events about them.
//!
//! **Invariant:** one step is open at a time, every step and message that begins also ends, and the
//! deltas of a message in order are its text.

use base::clock::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::event::EncodedEvent;
use crate::item::ItemBody;
use crate::response::ResponseUsage;
use crate::threads::run_deltas::{MessageDelta, StepDelta};
use crate::threads::run_message::{RunMessage, RunMessagePart};
use crate::threads::run_objects::{ThreadRunObject, ThreadRunStepObject};
use crate::threads::run_state::{RunHeader, RunState, RunStep, StepCall, StepDetails, StepMessage};
use crate::threads::run_values::{ThreadRunError, ThreadRunUsage};
use crate::threads::thread_status::{ThreadMessageStatus, ThreadRunStepStatus};

/// The parts of a run while they are written.
#[derive(Clone, Debug)]
pub(super) struct RunBuilder {
    pub(super) header: RunHeader,
    pub(super) state: RunState,
    pub(super) steps: Vec<RunStep>,
    /// The messages that the run has written, in order.
    pub(super) messages: Vec<RunMessage>,
    pub(super) next_seq: i64,
    /// The time of the next event.
    pub(super) now: Timestamp,
    /// Whether output was emitted.
    pub(super) has_output: bool,
    pub(super) speaker: Option<Value>,
    /// The usage that has not been added to a step yet.
    open_usage: Option<ThreadRunUsage>,
    /// The events that the caller has not received yet.
    pub(super) events: Vec<EncodedEvent>,
}

impl RunBuilder {
    /// Continues a run.
    pub(super) fn new(
        (header, state): (RunHeader, RunState),
        (steps, messages): (Vec<RunStep>, Vec<RunMessage>),
        next_seq: i64,
        now: Timestamp,
    ) -> Self {
        Self {
            header,
            state,
            steps,
            messages,
            next_seq,
            now,
            has_output: false,
            speaker: None,
            open_usage: None,
            events: Vec::new(),
        }
    }

    /// Writes a text to the open message, or to a new one.
    pub(super) fn write(&mut self, text: RunMessagePart) {
        self.ensure_message();
        if let Some(message) = self.messages.last_mut() {
            let part = message.push(&text);
            let delta = MessageDelta::new(message.id.clone(), part, text);
            self.emit("thread.message.delta", &delta);
        }
    }

    /// Begins a message, unless one is open.
    pub(super) fn ensure_message(&mut self) {
        if self.open_message().is_some() {
            return;
        }
        self.close_step(ThreadRunStepStatus::Completed);
        let message = RunMessage::new(self.speaker.clone(), self.now);
        let message_creation = StepMessage {
            message_id: message.id.clone(),
            troupe: self.speaker.clone(),
        };
        self.open_step(StepDetails::MessageCreation { message_creation });
        self.messages.push(message);
        self.emit_message("thread.message.created");
        self.emit_message("thread.message.in_progress");
    }

    /// Adds a call to the open step, or to a new one.
    pub(super) fn add_call(&mut self, call: ItemBody) {
        let Some(call) = step_call(call) else {
            return;
        };
        if !matches!(self.last_open_step(), Some(StepDetails::ToolCalls { .. })) {
            self.close_step(ThreadRunStepStatus::Completed);
            let details = StepDetails::ToolCalls {
                tool_calls: Vec::new(),
                troupe: self.speaker.clone(),
            };
            self.open_step(details);
        }
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        let deltas = StepDelta::of_call(&step.id, step.calls().len(), &call);
        if let StepDetails::ToolCalls { tool_calls, .. } = &mut step.details {
            tool_calls.push(call);
        }
        for delta in deltas {
            self.emit("thread.run.step.delta", &delta);
        }
    }

    /// Adds the output of the last call without one. Returns `false` if there is none.
    pub(super) fn finish_call(&mut self, result: Result<String, String>) -> bool {
        let is_error = result.is_err();
        let output = result.unwrap_or_else(|message| message);
        let Some(call) = self.open_calls().last() else {
            return false;
        };
        call.function.output = Some(output.clone());
        call.function.is_error = is_error;
        if let Some(step) = self.steps.last() {
            let at = step.calls().len() - 1;
            let delta = StepDelta::of_output(&step.id, at, output);
            self.emit("thread.run.step.delta", &delta);
        }
        true
    }

    /// Counts a model call and its usage, which belongs to the next step that ends.
    pub(super) fn count_call(&mut self, usage: Option<ResponseUsage>) {
        self.state.n_model_calls += 1;
        let Some(usage) = usage.map(ThreadRunUsage::from) else {
            return;
        };
        let plus = |before: Option<ThreadRunUsage>| Some(before.unwrap_or_default().plus(usage));
        self.state.usage = plus(self.state.usage);
        self.open_usage = plus(self.open_usage);
    }

    /// Adds the usage to the open step, which remains open.
    pub(super) fn charge_open_step(&mut self) {
        if let Some(step) = self.steps.last_mut() {
            step.usage = self.open_usage.take();
        }
    }

    /// Returns the calls of the open step without an output.
    pub(super) fn open_calls(&mut self) -> impl Iterator<Item = &mut StepCall> {
        let open = self.steps.last_mut().filter(|it| it.is_open());
        let calls = open.map(|it| match &mut it.details {
            StepDetails::ToolCalls { tool_calls, .. } => tool_calls.as_mut_slice(),
            StepDetails::MessageCreation { .. } => &mut [],
        });
        calls
            .into_iter()
            .flatten()
            .filter(|it| it.function.output.is_none())
    }

    fn last_open_step(&self) -> Option<&StepDetails> {
        let open = self.steps.last().filter(|it| it.is_open());
        open.map(|it| &it.details)
    }

    fn open_message(&mut self) -> Option<&mut RunMessage> {
        let last = self.messages.last_mut();
        last.filter(|it| it.status == ThreadMessageStatus::InProgress)
    }

    fn open_step(&mut self, details: StepDetails) {
        self.steps.push(RunStep::new(details, self.now));
        self.emit_step("thread.run.step.created");
        self.emit_step("thread.run.step.in_progress");
    }

    /// Ends the open message and the open step, if there is one.
    pub(super) fn close_step(&mut self, status: ThreadRunStepStatus) {
        self.close_message(None);
        self.end_step(status, None);
    }

    /// Ends the open message; `incomplete` is the reason if it was cut off.
    pub(super) fn close_message(&mut self, incomplete: Option<&str>) {
        let now = self.now;
        let Some(message) = self.open_message() else {
            return;
        };
        if message.parts.is_empty() && incomplete.is_none() {
            message.push(&RunMessagePart::Text(String::new()));
        }
        message.ended_at = Some(now);
        message.incomplete_reason = incomplete.map(str::to_owned);
        message.status = match incomplete {
            None => ThreadMessageStatus::Completed,
            Some(_) => ThreadMessageStatus::Incomplete,
        };
        self.emit_message(match incomplete {
            None => "thread.message.completed",
            Some(_) => "thread.message.incomplete",
        });
    }

    /// Ends the open step.
    pub(super) fn end_step(&mut self, status: ThreadRunStepStatus, error: Option<ThreadRunError>) {
        let now = self.now;
        let Some(step) = self.steps.last_mut().filter(|it| it.is_open()) else {
            return;
        };
        let usage = self.open_usage.take().or(step.usage);
        step.usage = Some(usage.unwrap_or_default());
        step.status = status;
        step.last_error = error;
        step.ended_at = Some(now);
        self.emit_step(match status {
            ThreadRunStepStatus::InProgress | ThreadRunStepStatus::Completed => {
                "thread.run.step.completed"
            }
            ThreadRunStepStatus::Cancelled => "thread.run.step.cancelled",
            ThreadRunStepStatus::Failed => "thread.run.step.failed",
            ThreadRunStepStatus::Expired => "thread.run.step.expired",
        });
    }

    /// Returns the run as clients see it.
    pub(super) fn document(&self) -> ThreadRunObject {
        ThreadRunObject::new(&self.header, &self.state)
    }

    /// Emits the state of the run.
    pub(super) fn emit_run(&mut self, kind: &str) {
        let run = self.document();
        self.push_event(kind, &run);
    }

    fn emit_step(&mut self, kind: &str) {
        if let Some(step) = self.steps.last() {
            let step = ThreadRunStepObject::new(&self.header, step);
            self.emit(kind, &step);
        }
    }

    fn emit_message(&mut self, kind: &str) {
        if let Some(message) = self.messages.last() {
            let message = message.document(&self.header);
            self.emit(kind, &message);
        }
    }

    /// Emits output.
    fn emit(&mut self, kind: &str, body: &impl Serialize) {
        self.has_output = true;
        self.push_event(kind, body);
    }

    fn push_event(&mut self, kind: &str, body: &impl Serialize) {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.events.push(EncodedEvent {
            seq,
            kind: kind.to_owned(),
            json: serde_json::to_string(body).expect("an event is an object with text keys"),
        });
    }
}

/// Returns a call as a step contains it; `None` for other items.
fn step_call(item: ItemBody) -> Option<StepCall> {
    match item {
        ItemBody::FunctionCall(it) => Some(StepCall::new(it.call_id, it.name, it.arguments)),
        ItemBody::ServerToolCall(it) => Some(StepCall::new(it.call_id, it.kind, it.arguments)),
        _ => None,
    }
}
