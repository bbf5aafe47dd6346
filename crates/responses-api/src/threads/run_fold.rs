//! The fold of a run of a thread: applies the events of a task to the run, its steps and its messages,
//! and returns the stream events that result. A run that waited for its client continues from its
//! stored state.
//!
//! **Invariant:** what is stored, what `GET` returns and what the last stream events contain are
//! states of this fold, so they cannot differ. No I/O; everything except new ids follows from the
//! input.

use std::mem;

use base::clock::Timestamp;
use serde_json::Value;

use crate::event::EncodedEvent;
use crate::fold::engine_event::{Completeness, EngineEvent, ResponseEnd, ResponseOutcome};
use crate::response::{ResponseError, ResponseState};
use crate::status::ResponseStatus;
use crate::threads::run_builder::RunBuilder;
use crate::threads::run_message::{RunMessage, RunMessagePart};
use crate::threads::run_objects::ThreadRunObject;
use crate::threads::run_state::{RunHeader, RunState, RunStep};
use crate::threads::run_values::{RequiredAction, ThreadRunError};
use crate::threads::thread_status::{ThreadMessageStatus, ThreadRunStatus, ThreadRunStepStatus};

/// The maximum time that a run waits for the outputs of its client, in milliseconds.
pub const MAX_WAIT_FOR_CLIENT_MS: i64 = 600_000;

/// A run while it is built.
#[derive(Clone, Debug)]
pub struct RunFold {
    run: RunBuilder,
    /// The state of the present task, which ends when the run waits for its client.
    task: ResponseState,
    /// Whether the present speaker has answered since its last server-side tool.
    has_answered: bool,
}

/// The stored parts of a run.
pub struct StoredRun {
    pub header: RunHeader,
    pub state: RunState,
    pub steps: Vec<RunStep>,
    pub messages: Vec<RunMessage>,
    /// The number of the next event.
    pub next_seq: i64,
}

impl RunFold {
    /// Continues a run from its stored parts.
    pub fn new(stored: StoredRun, now: Timestamp) -> Self {
        let status = match stored.state.status {
            ThreadRunStatus::Queued => ResponseStatus::Queued,
            _ => ResponseStatus::InProgress,
        };
        let (state, parts) = (
            (stored.header, stored.state),
            (stored.steps, stored.messages),
        );
        Self {
            run: RunBuilder::new(state, parts, stored.next_seq, now),
            task: ResponseState::new(status),
            has_answered: false,
        }
    }

    /// Sets the time of the next events.
    pub fn set_now(&mut self, now: Timestamp) {
        self.run.now = now;
    }

    /// Returns the run as clients see it.
    pub fn document(&self) -> ThreadRunObject {
        self.run.document()
    }

    /// Returns the part of the run that never changes.
    pub fn header(&self) -> &RunHeader {
        &self.run.header
    }

    /// Returns the state of the run.
    pub fn run_state(&self) -> &RunState {
        &self.run.state
    }

    /// Returns the steps in order.
    pub fn steps(&self) -> &[RunStep] {
        &self.run.steps
    }

    /// Returns the messages that the run has written, in order.
    pub fn messages(&self) -> &[RunMessage] {
        &self.run.messages
    }

    /// Returns the state of the present task; it is complete when the run waits for its client.
    pub fn state(&self) -> &ResponseState {
        &self.task
    }

    /// Returns whether the present task has emitted output.
    pub fn has_output(&self) -> bool {
        self.run.has_output
    }

    /// Appends a text that was sent to clients to the open message, without an event.
    pub fn restore_text(&mut self, message: &str, text: &RunMessagePart) {
        let found = self.run.messages.iter_mut().find(|it| it.id == message);
        if let Some(message) = found.filter(|it| it.status == ThreadMessageStatus::InProgress) {
            message.push(text);
        }
    }

    /// Applies an event and returns the stream events for it. After the end of the task, events are
    /// ignored.
    pub fn apply(&mut self, event: EngineEvent) -> Vec<EncodedEvent> {
        if self.task.status.is_final() || self.run.state.status.is_final() {
            return Vec::new();
        }
        match event {
            EngineEvent::Created => {
                self.run.emit_run("thread.run.created");
                self.run.emit_run("thread.run.queued");
            }
            EngineEvent::Started => self.start(),
            EngineEvent::SpeakerChanged(speaker) => self.change_speaker(speaker),
            EngineEvent::TextDelta(text) => self.write(RunMessagePart::Text(text)),
            EngineEvent::RefusalDelta(text) => self.write(RunMessagePart::Refusal(text)),
            EngineEvent::ModelCallEnded(usage) => self.run.count_call(usage),
            EngineEvent::ClientToolCall(call, Completeness::Complete) => {
                self.has_answered = true;
                self.run.add_call(call);
            }
            EngineEvent::ToolStarted(call) => {
                self.run.state.n_server_calls += 1;
                self.run.add_call(call);
            }
            EngineEvent::ToolFinished(result) => {
                self.has_answered &= !self.run.finish_call(result);
            }
            EngineEvent::NextIteration => self.run.close_step(ThreadRunStepStatus::Completed),
            EngineEvent::Finished(end) => self.finish(end),
            // A run has neither reasoning nor log probabilities, and a call that was cut off is no
            // call.
            EngineEvent::ReasoningDelta(_)
            | EngineEvent::ReasoningSealed(_)
            | EngineEvent::Logprobs(_)
            | EngineEvent::Annotation(_)
            | EngineEvent::ToolProgress(_)
            | EngineEvent::ClientToolCall(_, Completeness::Truncated) => {}
        }
        mem::take(&mut self.run.events)
    }

    /// Adds the outputs of the calls that wait for the client, and returns the run to the queue. The
    /// outputs must be those of exactly these calls.
    pub fn submit(
        &mut self,
        outputs: &[(String, String)],
        expires_at: Timestamp,
    ) -> Vec<EncodedEvent> {
        for call in self.run.open_calls() {
            if let Some((_, output)) = outputs.iter().find(|it| it.0 == call.id) {
                call.function.output = Some(output.clone());
            }
        }
        self.run.close_step(ThreadRunStepStatus::Completed);
        self.run.state.required_action = None;
        self.run.state.status = ThreadRunStatus::Queued;
        self.run.state.expires_at = expires_at;
        self.run.emit_run("thread.run.queued");
        mem::take(&mut self.run.events)
    }

    fn start(&mut self) {
        self.run.state.status = ThreadRunStatus::InProgress;
        self.run.state.started_at = self.run.state.started_at.or(Some(self.run.now));
        self.task.status = ResponseStatus::InProgress;
        self.run.emit_run("thread.run.in_progress");
    }

    fn change_speaker(&mut self, speaker: Value) {
        if self.run.speaker.is_some() {
            self.ensure_answer();
        }
        self.run.close_step(ThreadRunStepStatus::Completed);
        self.run.speaker = Some(speaker);
        self.has_answered = false;
    }

    fn write(&mut self, text: RunMessagePart) {
        self.has_answered = true;
        self.run.write(text);
    }

    /// Begins an empty message if there is no answer, because a model may stop without any output.
    fn ensure_answer(&mut self) {
        if !self.has_answered {
            self.has_answered = true;
            self.run.ensure_message();
        }
    }

    fn finish(&mut self, end: ResponseEnd) {
        self.run.now = end.at;
        self.task = ResponseState {
            status: end.outcome.status(),
            incomplete_reason: end.outcome.incomplete_reason(),
            error: match &end.outcome {
                ResponseOutcome::Failed(error) => Some(error.clone()),
                _ => None,
            },
            // That of all parts of the run.
            usage: self.run.state.usage.map(Into::into).or(end.usage),
            ended_at: Some(end.at),
        };
        match end.outcome {
            ResponseOutcome::Completed => self.complete(),
            ResponseOutcome::Incomplete("run_timeout" | "expired") => self.expire(),
            ResponseOutcome::Incomplete(reason) => self.cut(reason),
            ResponseOutcome::Failed(error) => self.fail(&error),
            ResponseOutcome::Cancelled => self.cancel(),
        }
    }

    fn complete(&mut self) {
        let calls = self.run.steps.last().filter(|it| it.is_open());
        if let Some(action) = calls.and_then(|it| RequiredAction::of(it.calls())) {
            self.run.charge_open_step();
            self.run.state.required_action = Some(action);
            self.run.state.work_left_ms = self.run.state.expires_at.ms_since(self.run.now).max(0);
            self.run.state.expires_at = self.run.now.plus_ms(MAX_WAIT_FOR_CLIENT_MS);
            self.run.state.status = ThreadRunStatus::RequiresAction;
            return self.run.emit_run("thread.run.requires_action");
        }
        self.ensure_answer();
        self.run.close_step(ThreadRunStepStatus::Completed);
        self.run.state.completed_at = Some(self.run.now);
        self.end(ThreadRunStatus::Completed, "thread.run.completed");
    }

    fn expire(&mut self) {
        self.run.close_message(Some("run_expired"));
        self.run.end_step(ThreadRunStepStatus::Expired, None);
        self.end(ThreadRunStatus::Expired, "thread.run.expired");
    }

    fn cut(&mut self, reason: &'static str) {
        let (of_run, of_message) = match reason {
            "max_output_tokens" => ("max_completion_tokens", "max_tokens"),
            "max_tool_calls" => ("max_steps", "max_tokens"),
            "content_filter" => ("content_filter", "content_filter"),
            reason => (reason, "max_tokens"),
        };
        self.run.close_message(Some(of_message));
        self.run.end_step(ThreadRunStepStatus::Completed, None);
        self.run.state.incomplete_reason = Some(of_run.to_owned());
        self.end(ThreadRunStatus::Incomplete, "thread.run.incomplete");
    }

    fn fail(&mut self, error: &ResponseError) {
        let code = match error.code.as_str() {
            "rate_limit_exceeded" => "rate_limit_exceeded",
            _ => "server_error",
        };
        let error = ThreadRunError {
            code: code.to_owned(),
            message: error.message.clone(),
        };
        self.run.close_message(Some("run_failed"));
        self.run
            .end_step(ThreadRunStepStatus::Failed, Some(error.clone()));
        self.run.state.last_error = Some(error);
        self.run.state.failed_at = Some(self.run.now);
        self.end(ThreadRunStatus::Failed, "thread.run.failed");
    }

    fn cancel(&mut self) {
        self.run.state.required_action = None;
        self.run.state.status = ThreadRunStatus::Cancelling;
        self.run.emit_run("thread.run.cancelling");
        self.run.end_step(ThreadRunStepStatus::Cancelled, None);
        self.run.close_message(Some("run_cancelled"));
        self.run.state.cancelled_at = Some(self.run.now);
        self.end(ThreadRunStatus::Cancelled, "thread.run.cancelled");
    }

    fn end(&mut self, status: ThreadRunStatus, kind: &str) {
        self.run.state.status = status;
        self.run.state.expires_at = self.run.now;
        self.run.state.required_action = None;
        self.run.emit_run(kind);
    }
}

/// Returns whether a stream of a run ends with an event of this kind.
pub fn ends_stream(kind: &str) -> bool {
    matches!(
        kind,
        "thread.run.completed"
            | "thread.run.incomplete"
            | "thread.run.failed"
            | "thread.run.cancelled"
            | "thread.run.expired"
            | "thread.run.requires_action"
    )
}

#[cfg(test)]
#[path = "run_fold_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "run_fold_property_tests.rs"]
mod property_tests;
