//! Runs one response from its first event to its last: runs its speakers, and folds, stores and
//! sends the events that they produce.
//!
//! A task owns everything it needs; tasks share permits and connection pools only. The model's
//! output is pushed to an event queue, which never waits. A second future folds the events, stores
//! what must be stored, and sends them to the reader.

use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::outcome::{CallEnd, FailureCode, GenerationFailure, ModelOutput};
use agent::permits::fair_permits::PermitOwner;
use agent::tools::tool_runtime::ToolRuntime;
use base::clock::Clock;
use base::ids::UserId;
use leased_jobs::concurrency_limit::ConcurrencyPermit;
use leased_jobs::lease::{CancelHandle, CancelReason};
use llm::delta::FinishReason;
use responses_api::event::EncodedEvent;
use responses_api::fold::engine_event::{EngineEvent, ResponseEnd, ResponseOutcome};
use responses_api::response::ResponseError;
use responses_api::status::ResponseStatus;
use tokio::time::{Instant, timeout_at};

use crate::responses::error::ResponseEngineError;
use crate::responses::execution::end_log::EndLog;
use crate::responses::execution::event_queue::EventQueue;
use crate::responses::execution::event_stream::EventSender;
use crate::responses::execution::mcp::plan::McpPlan;
use crate::responses::execution::projection::Projection;
use crate::responses::execution::recorder::RecordError;
use crate::responses::execution::speaker_call::SpeakerCall;
use crate::responses::execution::speakers::run_speakers;
use crate::responses::execution::tool_config::ToolConfig;
use crate::responses::input::sealed_reasoning::ReasoningSealer;
use crate::responses::persona_models::speaker_queue::SpeakerQueue;
use crate::responses::services::LogSignal;
use crate::responses::store::output_recorder::OutputRecorder;

/// The events of a background response are stored in batches, at most once per interval.
const LOG_INTERVAL: Duration = Duration::from_millis(100);

/// Everything that a response needs to run.
pub struct ResponseTask {
    pub call: SpeakerCall,
    /// The speakers after the first call.
    pub speakers: Option<SpeakerQueue>,
    pub tools: ToolConfig,
    pub tool_runtime: ToolRuntime,
    /// MCP work before the first model call.
    pub mcp_plan: McpPlan,
    pub limits: CallLimits,
    /// Encrypts the reasoning; `None` if it cannot be sent back.
    pub sealer: Option<ReasoningSealer>,
    pub cancel: CancelHandle,
    pub clock: Clock,
    pub output: ResponseOutput,
}

/// Where the events of a response are stored and sent.
pub struct ResponseOutput {
    pub fold: Projection,
    /// `None` if nothing is stored.
    pub recorder: Option<OutputRecorder>,
    /// `None` if no client reads the stream.
    pub sender: Option<EventSender>,
    /// The reader was too slow and was dropped.
    pub is_reader_dropped: bool,
    /// Released before the last event is sent, so that a client which then sends its next request is
    /// not rejected because of this one.
    pub permits: Vec<ConcurrencyPermit<UserId>>,
    /// Whether it has an event log, which already has its first events.
    pub is_background: bool,
    pub end_log: EndLog,
    pub log_written: LogSignal,
}

/// How a task ended.
#[derive(Debug)]
pub enum TaskOutcome {
    /// The response ended; contains its final state.
    Finished(Projection),
    /// The response has no output yet, so another node can run it.
    NotStarted,
}

/// Runs a response to its end.
pub async fn run(task: ResponseTask) -> TaskOutcome {
    let ResponseTask {
        call,
        mut speakers,
        tools,
        tool_runtime,
        mcp_plan,
        limits,
        sealer,
        cancel,
        clock,
        mut output,
    } = task;
    let events = output.first_events(&clock);
    if output.record_and_send(events).await.is_err() {
        cancel.cancel(CancelReason::LeaseLost);
    }
    let queue = EventQueue::default();
    let owner = PermitOwner::User(output.end_log.user);
    let running = async {
        let (tools, limits) = ((tools, tool_runtime, mcp_plan), (limits, owner));
        let (speakers, sealer) = (speakers.as_mut(), sealer.as_ref());
        let outcome = run_speakers(call, speakers, tools, limits, sealer, &queue, &cancel).await;
        queue.close();
        outcome
    };
    let (speakers_outcome, ()) =
        futures::join!(running, output.forward_events(&queue, &cancel, &clock));
    let counts = output.fold.call_counts();
    output.end_log.counts = counts.unwrap_or(speakers_outcome.counts);
    let is_retryable = output.is_background && !output.fold.has_output();
    let response_outcome = match (
        &speakers_outcome.speaker_error,
        speakers_outcome.stop_reason,
    ) {
        (Some(refusal), _) => Some(ResponseOutcome::Failed(start_error(refusal))),
        (None, Some(reason)) => Some(ResponseOutcome::Incomplete(reason)),
        (None, None) => outcome_of(&speakers_outcome.output, &cancel, is_retryable),
    };
    let Some(how) = response_outcome else {
        return TaskOutcome::NotStarted;
    };
    let usage = speakers_outcome.usage;
    if let (Some(speakers), Some(usage)) = (speakers, usage) {
        speakers.charge_tokens(usage).await;
    }
    let at = clock.now();
    let end = ResponseEnd {
        outcome: how,
        usage,
        at,
    };
    output.finish(Vec::new(), end, &cancel).await
}

impl ResponseOutput {
    /// Returns the events before the first model call.
    fn first_events(&mut self, clock: &Clock) -> Vec<EncodedEvent> {
        self.fold.set_now(clock.now());
        let mut events = Vec::new();
        if !self.is_background {
            events.extend(self.fold.apply(EngineEvent::Created));
        }
        // A second attempt continues after the events of the first one.
        if !self.is_background || self.fold.state().status == ResponseStatus::Queued {
            events.extend(self.fold.apply(EngineEvent::Started));
        }
        events
    }

    /// Forwards events from the queue until it is closed.
    async fn forward_events(&mut self, queue: &EventQueue, cancel: &CancelHandle, clock: &Clock) {
        while let Some(batch) = queue.next_batch().await {
            let started_at = Instant::now();
            self.fold.set_now(clock.now());
            let mut events = Vec::new();
            for event in batch {
                events.extend(self.fold.apply(event));
            }
            if self.fold.has_output() {
                self.end_log.mark_output();
            }
            match self.record_and_send(events).await {
                Ok(()) => self.log_written.send_replace(()),
                // Continuing would leave a gap in the log.
                Err(RecordError::LeaseLost) => {
                    return cancel.cancel(CancelReason::LeaseLost);
                }
                Err(RecordError::Database(error)) => {
                    tracing::error!(%error, "failed to store response events: {error}");
                    return cancel.cancel(CancelReason::LeaseLost);
                }
            }
            // Without a reader and without storage, the rest would be lost.
            if self.is_reader_dropped && self.recorder.is_none() {
                cancel.cancel(CancelReason::ClientDisconnected);
            }
            queue.mark_flushed();
            if self.is_background {
                // The first events are sent immediately, later ones in batches.
                let _ = timeout_at(started_at + LOG_INTERVAL, queue.wait_for_flush_request()).await;
            }
        }
    }

    /// Fails a claimed response that cannot be started.
    pub async fn fail(self, error: &ResponseEngineError, clock: &Clock, cancel: &CancelHandle) {
        let outcome = ResponseOutcome::Failed(start_error(error));
        self.end(outcome, clock, cancel).await;
    }

    /// Ends a claimed task without a model call.
    pub async fn end(mut self, outcome: ResponseOutcome, clock: &Clock, cancel: &CancelHandle) {
        let events = self.first_events(clock);
        let end = ResponseEnd {
            outcome,
            usage: None,
            at: clock.now(),
        };
        self.finish(events, end, cancel).await;
    }

    async fn record_and_send(&mut self, events: Vec<EncodedEvent>) -> Result<(), RecordError> {
        if events.is_empty() {
            return Ok(());
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.record(&self.fold, &events).await?;
        }
        self.send(events);
        Ok(())
    }

    fn send(&mut self, events: Vec<EncodedEvent>) {
        if let Some(sender) = &self.sender
            && !sender.push(events)
        {
            self.sender = None;
            self.is_reader_dropped = true;
        }
    }

    /// Stores and sends `events` and the end. If the lease was lost, sends a failure instead.
    async fn finish(
        mut self,
        mut events: Vec<EncodedEvent>,
        end: ResponseEnd,
        cancel: &CancelHandle,
    ) -> TaskOutcome {
        let before = self.recorder.as_ref().map(|_| self.fold.clone());
        let at = end.at;
        events.extend(self.fold.apply(EngineEvent::Finished(end)));
        let mut is_final = self.recorder.is_none();
        if let Some(recorder) = self
            .recorder
            .take()
            .filter(|_| cancel.reason() != CancelReason::LeaseLost)
        {
            let finished = recorder.finish(&self.fold, &events).await;
            is_final = finished.is_ok();
            if let (Err(_), Some(before)) = (finished, before) {
                self.fold = before;
                events = self.fold.apply(EngineEvent::Finished(ResponseEnd {
                    outcome: ResponseOutcome::Failed(lease_lost_error()),
                    usage: None,
                    at,
                }));
            }
        }
        if is_final && self.fold.is_over() {
            let has_client_left =
                cancel.token.is_cancelled() && cancel.reason() == CancelReason::ClientDisconnected;
            self.end_log.write(self.fold.state(), has_client_left);
        }
        self.log_written.send_replace(());
        self.permits.clear();
        self.send(events);
        TaskOutcome::Finished(self.fold)
    }
}

/// Returns how the response ended, or `None` if another node can run it again.
fn outcome_of(
    output: &ModelOutput,
    cancel: &CancelHandle,
    is_retryable: bool,
) -> Option<ResponseOutcome> {
    Some(match &output.end {
        CallEnd::Answered(FinishReason::Length) => ResponseOutcome::Incomplete("max_output_tokens"),
        CallEnd::Answered(FinishReason::ContentFilter) => {
            ResponseOutcome::Incomplete("content_filter")
        }
        CallEnd::Answered(_) if output.is_capped => {
            ResponseOutcome::Incomplete("max_output_tokens")
        }
        CallEnd::Answered(_) => ResponseOutcome::Completed,
        CallEnd::Failed(failure) if failure.code == FailureCode::RunTimeout => {
            ResponseOutcome::Incomplete("run_timeout")
        }
        CallEnd::Failed(failure) => ResponseOutcome::Failed(failure_error(failure)),
        CallEnd::Canceled => match cancel.reason() {
            CancelReason::ClientDisconnected | CancelReason::Requested => {
                ResponseOutcome::Cancelled
            }
            CancelReason::Shutdown if is_retryable => return None,
            CancelReason::Shutdown | CancelReason::LeaseLost => {
                ResponseOutcome::Failed(lease_lost_error())
            }
        },
    })
}

/// Returns the error of a response whose node could not finish it.
pub fn lease_lost_error() -> ResponseError {
    ResponseError {
        code: "instance_lost".to_owned(),
        message: "The server that ran this response could not finish it.".to_owned(),
    }
}

/// Returns the error of a queued response that can no longer be started.
pub fn start_error(error: &ResponseEngineError) -> ResponseError {
    let (code, message) = match error {
        ResponseEngineError::PromptTooLong { .. } => (
            "context_length_exceeded",
            "The input exceeds the model's context window.",
        ),
        ResponseEngineError::InvalidMacro(_) => (
            "upstream_error",
            "The macros in a text of the model exceed a limit.",
        ),
        ResponseEngineError::ModelNotFound(_) => {
            ("upstream_error", "The requested model no longer exists.")
        }
        ResponseEngineError::SpaceArchived => ("upstream_error", "This space is archived."),
        ResponseEngineError::TokenLimitReached => {
            ("upstream_error", "This space has used up its token limit.")
        }
        ResponseEngineError::NoSpeaker => {
            ("upstream_error", "No character of this space can speak.")
        }
        _ => ("upstream_error", "The model is unavailable."),
    };
    ResponseError {
        code: code.to_owned(),
        message: message.to_owned(),
    }
}

/// Translates a model failure into an error of this API.
pub fn failure_error(failure: &GenerationFailure) -> ResponseError {
    let code = match failure.code {
        FailureCode::UpstreamTimeout => "upstream_timeout",
        FailureCode::UpstreamError | FailureCode::NoProvider => "upstream_error",
        FailureCode::UpstreamRateLimited => "rate_limit_exceeded",
        FailureCode::UpstreamDisconnected => "upstream_disconnected",
        FailureCode::ContextOverflow => "context_length_exceeded",
        _ => "server_error",
    };
    ResponseError {
        code: code.to_owned(),
        message: failure.message.clone(),
    }
}
