//! One turn: a value that one task owns, from the first event to the last. It is passed, never
//! found; two turns share pools and nothing else.
//!
//! The model's words go into an inbox, which only takes memory; whoever empties it folds them, writes
//! what must be written, and hands the events on.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::clock::Clock;
use crate::generation::call_limits::CallLimits;
use crate::generation::outcome::{CallEnd, FailureCode, GenerationFailure, ModelOutput};
use crate::llm::delta::FinishReason;
use crate::responses::active_tasks::{CancelHandle, ResponseCancelReason};
use crate::responses::engine_event::{EngineEvent, ResponseEnd, ResponseOutcome};
use crate::responses::error::ResponseEngineError;
use crate::responses::event_queue::EventQueue;
use crate::responses::event_stream::EventSender;
use crate::responses::fold::{Fold, StreamEvent};
use crate::responses::mcp::McpPlan;
use crate::responses::recorder::{RecordError, Recorder};
use crate::responses::response::ResponseStatus;
use crate::responses::response_document::ResponseError;
use crate::responses::speaker_queue::SpeakerQueue;
use crate::responses::speakers;
use crate::responses::speakers::SpeakerCall;
use crate::responses::tool_config::ToolConfig;
use crate::tools::tool_runtime::ToolRuntime;

/// Events of a background response are written down together, so often at most.
const LOG_INTERVAL: Duration = Duration::from_millis(100);

/// Everything that a turn needs.
pub struct ResponseTask {
    pub call: SpeakerCall,
    /// Those who speak after it.
    pub speakers: Option<SpeakerQueue>,
    pub tools: ToolConfig,
    pub tool_runtime: ToolRuntime,
    /// What is to be done with servers elsewhere.
    pub mcp_plan: McpPlan,
    pub limits: CallLimits,
    pub cancel: CancelHandle,
    pub clock: Clock,
    pub output: ResponseOutput,
}

/// Where a turn is shown and written down.
pub struct ResponseOutput {
    pub fold: Fold,
    /// `None`: nothing is stored.
    pub recorder: Option<Recorder>,
    /// `None`: nobody reads along.
    pub sender: Option<EventSender>,
    /// Whoever read along was too slow.
    pub is_reader_dropped: bool,
    pub is_background: bool,
    /// Whether the log has its first events.
    pub has_log: bool,
}

/// How a turn was left.
#[derive(Debug)]
pub enum TaskOutcome {
    /// With its end; this is the whole response.
    Finished(Value),
    /// With nothing put out, for another node to take.
    NotStarted,
}

/// Takes the turn.
pub async fn run(task: ResponseTask) -> TaskOutcome {
    let ResponseTask {
        call,
        speakers: mut cast,
        tools: toolbox,
        tool_runtime: workshop,
        mcp_plan: errand,
        limits: watches,
        cancel: stop,
        clock,
        output: mut stage,
    } = task;
    if stage.start().await.is_err() {
        stop.cancel(ResponseCancelReason::LeaseLost);
    }
    let queue = EventQueue::default();
    let running = async {
        let tools = (toolbox, workshop, errand);
        let outcome =
            speakers::run_speakers(call, cast.as_mut(), tools, watches, &queue, &stop).await;
        queue.close();
        outcome
    };
    let (spoken, ()) = futures::join!(running, stage.forward_events(&queue, &stop));
    let is_retryable = stage.is_background && !stage.fold.has_output();
    let response_outcome = match (&spoken.speaker_error, spoken.stop_reason) {
        (Some(refusal), _) => Some(ResponseOutcome::Failed(start_error(refusal))),
        (None, Some(reason)) => Some(ResponseOutcome::Incomplete(reason)),
        (None, None) => outcome_of(&spoken.output, &stop, is_retryable),
    };
    let Some(how) = response_outcome else {
        return TaskOutcome::NotStarted;
    };
    let usage = spoken.usage;
    if let (Some(cast), Some(usage)) = (cast, usage) {
        cast.charge_tokens(usage).await;
    }
    let at = clock.now();
    stage
        .finish(
            ResponseEnd {
                outcome: how,
                usage,
                at,
            },
            &stop,
        )
        .await
}

impl ResponseOutput {
    async fn start(&mut self) -> Result<(), RecordError> {
        let mut events = Vec::new();
        if !self.has_log {
            events.extend(self.fold.apply(EngineEvent::Created));
        }
        // A second attempt goes on where the first one stopped.
        if !self.is_background || self.fold.state().status == ResponseStatus::Queued {
            events.extend(self.fold.apply(EngineEvent::Started));
        }
        self.record_and_send(events).await
    }

    /// Shows what comes into the inbox, until it is closed.
    async fn forward_events(&mut self, queue: &EventQueue, cancel: &CancelHandle) {
        while let Some(batch) = queue.next_batch().await {
            let started_at = Instant::now();
            let mut events = Vec::new();
            for event in batch {
                events.extend(self.fold.apply(event));
            }
            match self.record_and_send(events).await {
                Ok(()) => cancel.log_written.send_replace(()),
                // What follows would leave a gap in the log.
                Err(RecordError::LeaseLost) => {
                    return cancel.cancel(ResponseCancelReason::LeaseLost);
                }
                Err(RecordError::Database(error)) => {
                    tracing::error!(%error, "a response could not be written: {error}");
                    return cancel.cancel(ResponseCancelReason::LeaseLost);
                }
            }
            // What nobody reads and nobody keeps need not be said.
            if self.is_reader_dropped && self.recorder.is_none() {
                cancel.cancel(ResponseCancelReason::ClientDisconnected);
            }
            queue.mark_flushed();
            if self.is_background {
                // The first words go out at once, the next together.
                let _ = timeout_at(started_at + LOG_INTERVAL, queue.wait_for_flush_request()).await;
            }
        }
    }

    async fn record_and_send(&mut self, events: Vec<StreamEvent>) -> Result<(), RecordError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(self.fold.items(), &events).await?;
        }
        self.send(events);
        Ok(())
    }

    fn send(&mut self, events: Vec<StreamEvent>) {
        if let Some(sender) = &self.sender
            && !sender.push(events)
        {
            self.sender = None;
            self.is_reader_dropped = true;
        }
    }

    /// Writes the end and tells of it. Who has lost the response tells that it was lost.
    async fn finish(mut self, end: ResponseEnd, cancel: &CancelHandle) -> TaskOutcome {
        let before = self.recorder.as_ref().map(|_| self.fold.clone());
        let at = end.at;
        let mut events = self.fold.apply(EngineEvent::Finished(end));
        if let Some(recorder) = self
            .recorder
            .take()
            .filter(|_| cancel.reason() != ResponseCancelReason::LeaseLost)
        {
            let (items, state) = (self.fold.items(), self.fold.state());
            let finished = recorder.finish(items, &events, state).await;
            if let (Err(_), Some(before)) = (finished, before) {
                self.fold = before;
                events = self.fold.apply(EngineEvent::Finished(ResponseEnd {
                    outcome: ResponseOutcome::Failed(lease_lost_error()),
                    usage: None,
                    at,
                }));
            }
        }
        cancel.log_written.send_replace(());
        self.send(events);
        TaskOutcome::Finished(self.fold.document())
    }
}

/// How a turn ended. `None`: it did not, another node may take it.
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
            ResponseCancelReason::ClientDisconnected | ResponseCancelReason::Requested => {
                ResponseOutcome::Cancelled
            }
            ResponseCancelReason::Shutdown if is_retryable => return None,
            ResponseCancelReason::Shutdown | ResponseCancelReason::LeaseLost => {
                ResponseOutcome::Failed(lease_lost_error())
            }
        },
    })
}

/// What is told of a response whose node could not end it.
pub fn lease_lost_error() -> ResponseError {
    ResponseError {
        code: "instance_lost".to_owned(),
        message: "The server that worked on this response could not finish it.".to_owned(),
    }
}

/// What was right when a response was queued is so no more.
pub fn start_error(error: &ResponseEngineError) -> ResponseError {
    let (code, message) = match error {
        ResponseEngineError::PromptTooLong { .. } => (
            "context_length_exceeded",
            "The input is longer than the model's window.",
        ),
        ResponseEngineError::ModelNotFound(_) => {
            ("upstream_error", "The model is not there any more.")
        }
        ResponseEngineError::SpaceArchived => ("upstream_error", "The space is archived."),
        ResponseEngineError::TokenLimitReached => {
            ("upstream_error", "The space has used up its tokens.")
        }
        ResponseEngineError::NoSpeaker => {
            ("upstream_error", "No character of the space can speak.")
        }
        _ => ("upstream_error", "The model cannot be asked."),
    };
    ResponseError {
        code: code.to_owned(),
        message: message.to_owned(),
    }
}

/// A failure in the words of this API.
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
