//! What is said in a turn: the call of its model, and those of everybody who speaks after it.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::generation::call_limits::CallLimits;
use crate::generation::outcome::ModelOutput;
use crate::generation::trim::ReplyTrimmer;
use crate::llm::provider::Provider;
use crate::llm::request::Request;
use crate::responses::active_tasks::CancelHandle;
use crate::responses::engine_event::EngineEvent;
use crate::responses::error::ResponseEngineError;
use crate::responses::event_queue::EventQueue;
use crate::responses::mcp::McpPlan;
use crate::responses::mcp_setup;
use crate::responses::mcp_setup::McpContext;
use crate::responses::response_document::ResponseUsage;
use crate::responses::rounds::{ResponseLoop, ResponseLoopState};
use crate::responses::speaker_queue::SpeakerQueue;
use crate::responses::tool_config::ToolConfig;
use crate::tools::tool_runtime::ToolRuntime;

/// A call of a model, the first of its rounds.
pub struct SpeakerCall {
    pub provider: Arc<dyn Provider>,
    pub request: Request,
    /// The calls that its provider may be asked for at once.
    pub permits: Arc<Semaphore>,
    /// Cleans what is said.
    pub trim: ReplyTrimmer,
    /// What its items tell of who speaks; `None`: nobody but the model.
    pub speaker_metadata: Option<Value>,
}

/// What came of the calls of a turn.
pub struct SpeakersOutcome {
    /// The last words.
    pub output: ModelOutput,
    /// Why there are no more, where that is not how they ended.
    pub stop_reason: Option<&'static str>,
    /// Of all calls.
    pub usage: Option<ResponseUsage>,
    /// Why nobody spoke after it who should have.
    pub speaker_error: Option<ResponseEngineError>,
}

/// Makes the call with its rounds, and those of all who speak after it. All of it together may take
/// `watches.total`.
pub async fn run_speakers(
    mut call: SpeakerCall,
    mut speakers: Option<&mut SpeakerQueue>,
    (mut tools, mut tool_runtime, mcp_plan): (ToolConfig, ToolRuntime, McpPlan),
    limits: CallLimits,
    queue: &EventQueue,
    stop: &CancelHandle,
) -> SpeakersOutcome {
    let deadline = Instant::now() + limits.total;
    mcp_setup::execute_plan(
        mcp_plan,
        McpContext {
            request: &mut call.request,
            tools: &mut tools,
            tool_runtime: &mut tool_runtime,
            queue,
        },
        (stop, deadline),
    )
    .await;
    let mut state = ResponseLoopState::new(&tools, &limits);
    loop {
        if let Some(metadata) = &call.speaker_metadata {
            queue.push(EngineEvent::SpeakerChanged(metadata.clone()));
        }
        let speaker = call.request.speaker.clone();
        let response_loop = ResponseLoop {
            call,
            tools: &tools,
            tool_runtime: &tool_runtime,
            limits,
            stop,
            queue,
            deadline,
            loop_state: &mut state,
        };
        let outcome = response_loop.run_to_end().await;
        let next = match &mut speakers {
            Some(cast) if outcome.is_complete => {
                cast.record_text(&speaker, &outcome.output.text);
                cast.next().await
            }
            _ => Ok(None),
        };
        let (next, speaker_error) = match next {
            Ok(next) => (next, None),
            Err(refusal) => (None, Some(refusal)),
        };
        let Some(next) = next else {
            return SpeakersOutcome {
                output: outcome.output,
                stop_reason: outcome.stop_reason,
                usage: state.usage,
                speaker_error,
            };
        };
        call = next;
        if !tools.server_tools.is_empty() {
            tools.apply_to_request(&mut call.request);
        }
    }
}
