//! Runs the speakers of a response in order, each with its model calls and tool calls, after the
//! setup of the MCP servers.

use std::panic::AssertUnwindSafe;

use agent::agent_loop::AgentLoop;
use agent::call_limits::CallLimits;
use agent::outcome::{CallEnd, GenerationFailure, ModelOutput};
use agent::permits::fair_permits::PermitOwner;
use agent::tools::tool_runtime::ToolRuntime;
use futures::FutureExt;
use leased_jobs::lease::CancelHandle;
use responses_api::fold::engine_event::EngineEvent;
use responses_api::response::ResponseUsage;
use tokio::time::Instant;

use crate::responses::error::ResponseEngineError;
use crate::responses::execution::agent_host::ResponseHost;
use crate::responses::execution::event_queue::EventQueue;
use crate::responses::execution::mcp::plan::McpPlan;
use crate::responses::execution::mcp::setup;
use crate::responses::execution::mcp::setup::McpContext;
use crate::responses::execution::response_sink::{AnnotationBudget, ResponseSink};
use crate::responses::execution::speaker_call::SpeakerCall;
use crate::responses::execution::tool_config::ToolConfig;
use crate::responses::input::sealed_reasoning::ReasoningSealer;
use crate::responses::persona_models::speaker_queue::SpeakerQueue;
use crate::responses::telemetry::ended_call::CallCounts;

/// How the last speaker ended, and the usage of all.
pub struct SpeakersOutcome {
    /// The output of the last model call.
    pub output: ModelOutput,
    /// Why the response was stopped early, unless the output itself states it.
    pub stop_reason: Option<&'static str>,
    /// The usage of all model calls.
    pub usage: Option<ResponseUsage>,
    /// The calls of models and tools.
    pub counts: CallCounts,
    /// Why the next speaker could not begin.
    pub speaker_error: Option<ResponseEngineError>,
}

/// Runs the first call and its tool calls, then every further speaker. The limit `limits.total`
/// covers all of them together. The calls use permits of this owner.
pub async fn run_speakers(
    mut call: SpeakerCall,
    mut speakers: Option<&mut SpeakerQueue>,
    (mut tools, mut tool_runtime, mcp_plan): (ToolConfig, ToolRuntime, McpPlan),
    (limits, owner): (CallLimits, PermitOwner),
    sealer: Option<&ReasoningSealer>,
    queue: &EventQueue,
    cancel: &CancelHandle,
) -> SpeakersOutcome {
    let deadline = Instant::now() + limits.total;
    setup::execute_plan(
        mcp_plan,
        McpContext {
            request: &mut call.request,
            tools: &mut tools,
            tool_runtime: &mut tool_runtime,
            owner,
            queue,
        },
        (cancel, deadline),
    )
    .await;
    let mut budget = AnnotationBudget::new(limits.max_text_bytes);
    let sink = ResponseSink {
        queue,
        budget: &mut budget,
        sealer,
    };
    let mut host = ResponseHost::new(sink, &tools, &tool_runtime.registry, &cancel.token);
    loop {
        if let Some(metadata) = &call.speaker_metadata {
            queue.push(EngineEvent::SpeakerChanged(metadata.clone()));
        }
        host.begin_speaker(&call);
        let agent_loop = AgentLoop {
            host: &mut host,
            provider: call.provider.as_ref(),
            permits: Some(&call.calls.call_permits),
            owner,
            request: &mut call.request,
            trim: call.trim,
            limits,
            executor: &tool_runtime.executor,
            deadline,
            cancel: &cancel.token,
        };
        let running = AssertUnwindSafe(agent_loop.run()).catch_unwind().await;
        let is_panicked = running.is_err();
        let mut outcome = running.unwrap_or_default();
        if is_panicked {
            outcome.output.end = CallEnd::Failed(GenerationFailure::internal());
        }
        if cancel.token.is_cancelled() {
            outcome.output.end = CallEnd::Canceled;
            (outcome.stop_reason, outcome.is_complete) = (None, false);
        }
        let next = match &mut speakers {
            Some(speakers) if outcome.is_complete => {
                speakers.record_text(&call.request.speaker, &outcome.output.text);
                speakers.next().await
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
                usage: host.usage,
                counts: host.counts,
                speaker_error,
            };
        };
        call = next;
        if !tools.server_tools.is_empty() {
            tools.apply_to_request(&mut call.request);
        }
    }
}
