//! The loop of one speaker: calls the model, runs the tools it calls, and calls it again with the
//! results.
//!
//! **Invariant:** all events of an iteration are processed and stored before the next one begins.
//! The tool calls of an iteration are emitted at its end: first those that ran here, then those for
//! the client.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use leased_jobs::lease::CancelHandle;
use tokio::time::{Instant, timeout_at};

use crate::generation::call_limits::CallLimits;
use crate::generation::next_action::{DecisionState, NextAction};
use crate::generation::outcome::{CallEnd, FailureCode, GenerationFailure, ModelOutput};
use crate::generation::{model_call, next_action};
use crate::llm::delta::FinishReason;
use crate::llm::request::Message;
use crate::responses::engine_event::{Completeness, EngineEvent};
use crate::responses::error::ResponseEngineError;
use crate::responses::event_queue::EventQueue;
use crate::responses::fold_calls::CallItem;
use crate::responses::response_document::ResponseUsage;
use crate::responses::response_sink::{AnnotationBudget, ResponseSink};
use crate::responses::speakers::SpeakerCall as ModelCall;
use crate::responses::tool_config::{DeclaredTool, ToolConfig, ToolKind};
use crate::responses::tool_dispatch::{CallBudget, DispatchedCall, Disposition};
use crate::responses::{prompt_assembler, tool_dispatch, usage};
use crate::tools::executor::ToolJob;
use crate::tools::ordered_output::ToolUpdate;
use crate::tools::tool::ToolResult;
use crate::tools::tool_messages;
use crate::tools::tool_runtime::ToolRuntime;

/// The most server-side tool calls of one response.
const MAX_SERVER_CALLS: u32 = 32;

impl ToolRuntime {
    /// Checks that all declared server-side tools exist.
    ///
    /// # Errors
    /// Returns `UnknownTool` with the first one that does not.
    pub fn must_have(&self, toolbox: &ToolConfig) -> Result<(), ResponseEngineError> {
        let is_missing = |it: &DeclaredTool| {
            let name = prompt_assembler::builtin_tool_name(&it.tool.name);
            it.kind == ToolKind::Server && self.registry.find(name).is_none()
        };
        match toolbox.tools.iter().position(is_missing) {
            None => Ok(()),
            Some(at) => Err(ResponseEngineError::UnknownTool(format!(
                "tools[{at}].type"
            ))),
        }
    }
}

/// The loop of one speaker.
pub struct ResponseLoop<'a> {
    /// Its request grows with each iteration.
    pub call: ModelCall,
    pub tools: &'a ToolConfig,
    pub tool_runtime: &'a ToolRuntime,
    pub limits: CallLimits,
    pub stop: &'a CancelHandle,
    pub queue: &'a EventQueue,
    pub deadline: Instant,
    pub loop_state: &'a mut ResponseLoopState,
}

/// How the loop ended.
pub struct ResponseLoopOutcome {
    /// The output of the last model call.
    pub output: ModelOutput,
    /// Why the loop was stopped early, unless the output itself states it.
    pub stop_reason: Option<&'static str>,
    /// No call is pending and nothing was cut off, so the next speaker can begin.
    pub is_complete: bool,
}

/// State that all iterations and speakers of one response share.
pub struct ResponseLoopState {
    /// The usage of all model calls.
    pub usage: Option<ResponseUsage>,
    known_call_ids: HashSet<String>,
    call_budget: CallBudget,
    annotation_budget: AnnotationBudget,
    n_iterations: u32,
}

impl ResponseLoopState {
    /// Creates the state of a new response.
    pub fn new(tools: &ToolConfig, limits: &CallLimits) -> Self {
        Self {
            usage: None,
            known_call_ids: HashSet::new(),
            call_budget: CallBudget {
                n_total: tools.max_calls.unwrap_or(u32::MAX),
                n_server: MAX_SERVER_CALLS,
            },
            annotation_budget: AnnotationBudget::new(limits.max_text_bytes),
            n_iterations: 0,
        }
    }
}

/// The current iteration.
struct ResponseIteration {
    output: ModelOutput,
    calls: Vec<DispatchedCall>,
    /// The results of the calls that ran, with their positions.
    outcomes: Vec<(usize, ToolResult)>,
    exceeds_budget: bool,
    has_run_tools: bool,
}

impl ResponseLoop<'_> {
    /// Runs all iterations.
    pub async fn run_to_end(mut self) -> ResponseLoopOutcome {
        let before = self.call.request.messages.iter().flat_map(|it| &it.calls);
        self.loop_state
            .known_call_ids
            .extend(before.map(|it| it.id.clone()));
        self.loop_state.n_iterations = 0;
        let mut iteration = self.call_model().await;
        loop {
            let stop_reason = match next_action::next(&self.decision_state(&iteration)) {
                NextAction::RunTools => {
                    self.run_tools(&mut iteration).await;
                    continue;
                }
                NextAction::CallModel => {
                    self.append_results(iteration).await;
                    iteration = self.call_model().await;
                    continue;
                }
                NextAction::Cancel => {
                    iteration.output.end = CallEnd::Canceled;
                    None
                }
                NextAction::Finish => None,
                NextAction::Truncate(reason) => Some(reason),
            };
            let is_complete = stop_reason.is_none()
                && iteration.calls.is_empty()
                && !is_truncated(&iteration.output);
            return ResponseLoopOutcome {
                output: iteration.output,
                stop_reason,
                is_complete,
            };
        }
    }

    fn decision_state(&self, iteration: &ResponseIteration) -> DecisionState {
        let is_server = |it: &&DispatchedCall| matches!(it.disposition, Disposition::Server(..));
        let n_server = iteration.calls.iter().filter(is_server).count();
        let is_client = |it: &DispatchedCall| matches!(it.disposition, Disposition::Client(_));
        DecisionState {
            is_cancelled: self.stop.token.is_cancelled()
                || iteration.output.end == CallEnd::Canceled,
            has_failed: is_truncated(&iteration.output),
            is_answered: iteration.calls.is_empty() && !iteration.exceeds_budget,
            exceeds_budget: iteration.exceeds_budget,
            waits_for_client: iteration.calls.iter().any(is_client),
            is_late: Instant::now() >= self.deadline,
            n_iterations: self.loop_state.n_iterations,
            n_pending: if iteration.has_run_tools { 0 } else { n_server },
        }
    }

    /// Calls the model, emits its output, and dispatches its tool calls.
    async fn call_model(&mut self) -> ResponseIteration {
        let mut output = self.stream_model().await;
        self.loop_state.n_iterations += 1;
        let is_answer = matches!(output.end, CallEnd::Answered(_));
        let usage = usage::count(&output, &self.call.request, is_answer).await;
        self.loop_state.usage = ResponseUsage::sum([self.loop_state.usage, usage]);
        self.limits.max_text_bytes -= output.text.len().min(self.limits.max_text_bytes);
        let calls = std::mem::take(&mut output.calls);
        let mut iteration = ResponseIteration {
            output,
            calls: Vec::new(),
            outcomes: Vec::new(),
            exceeds_budget: false,
            has_run_tools: false,
        };
        if is_truncated(&iteration.output) {
            for call in tool_dispatch::truncated_calls(calls, self.tools) {
                self.queue
                    .push(EngineEvent::ClientToolCall(call, Completeness::Truncated));
            }
            return iteration;
        }
        let ResponseLoopState {
            known_call_ids: known,
            call_budget: left,
            ..
        } = &mut *self.loop_state;
        let dispatched = tool_dispatch::dispatch(calls, self.tools, known, left);
        (iteration.calls, iteration.exceeds_budget) = (dispatched.calls, dispatched.exceeds_budget);
        if !iteration
            .calls
            .iter()
            .any(|it| matches!(it.disposition, Disposition::Server(..)))
        {
            self.emit_client_calls(&iteration);
        }
        iteration
    }

    async fn stream_model(&mut self) -> ModelOutput {
        let (token, deadline) = (&self.stop.token, self.deadline);
        // The permit is held while the model runs, but not while tools run.
        let permit = tokio::select! {
            () = token.cancelled() => None,
            permit = timeout_at(deadline, self.call.permits.acquire()) => permit.ok().and_then(Result::ok),
        };
        self.limits.total = deadline.saturating_duration_since(Instant::now());
        let mut sink = ResponseSink {
            queue: self.queue,
            budget: &mut self.loop_state.annotation_budget,
        };
        let (provider, request, watches) = (
            self.call.provider.as_ref(),
            &self.call.request,
            &self.limits,
        );
        let streaming = model_call::complete(
            provider,
            request,
            self.call.trim.clone(),
            watches,
            &mut sink,
            token,
        );
        let output = AssertUnwindSafe(streaming).catch_unwind().await;
        drop(permit);
        output.unwrap_or_else(|_| output_after_panic())
    }

    /// Runs the server-side calls of an iteration and emits them.
    async fn run_tools(&self, iteration: &mut ResponseIteration) {
        let (mut jobs, mut items, mut positions) = (Vec::new(), Vec::<CallItem>::new(), Vec::new());
        for (at, call) in iteration.calls.iter().enumerate() {
            if let Disposition::Server(receipt, name, arguments) = &call.disposition {
                match self.tool_runtime.registry.find(name) {
                    None => iteration
                        .outcomes
                        .push((at, Err("It is not there any more.".to_owned()))),
                    Some(tool) => {
                        jobs.push(ToolJob {
                            tool: tool.clone(),
                            arguments: arguments.clone(),
                        });
                        items.push(receipt.clone());
                        positions.push(at);
                    }
                }
            }
        }
        let show = |at: usize, update: ToolUpdate| {
            self.queue.push(match update {
                ToolUpdate::Started => EngineEvent::ToolStarted(items[at].clone()),
                ToolUpdate::Progress(message) => EngineEvent::ToolProgress(message),
                ToolUpdate::Finished(outcome) => EngineEvent::ToolFinished(outcome),
            });
        };
        let running = self.tool_runtime.executor.run(jobs, show);
        let outcomes = tokio::select! {
            () = self.stop.token.cancelled() => return,
            outcomes = timeout_at(self.deadline, running) => outcomes,
        };
        // On a timeout nothing more is emitted, and the response ends.
        if let Ok(outcomes) = outcomes {
            iteration.has_run_tools = true;
            iteration
                .outcomes
                .extend(positions.into_iter().zip(outcomes));
            self.emit_client_calls(iteration);
        }
    }

    /// Emits the calls for the client.
    fn emit_client_calls(&self, iteration: &ResponseIteration) {
        for dispatched in &iteration.calls {
            if let Disposition::Client(call) = &dispatched.disposition {
                self.queue.push(EngineEvent::ClientToolCall(
                    call.clone(),
                    Completeness::Complete,
                ));
            }
        }
    }

    /// Appends the output and the tool results to the request, once all events are processed.
    async fn append_results(&mut self, iteration: ResponseIteration) {
        self.queue.push(EngineEvent::NextIteration);
        tokio::select! {
            () = self.stop.token.cancelled() => {}
            () = self.queue.flush() => {}
        }
        let calls = iteration.calls.iter().map(|it| it.call.clone()).collect();
        let messages = &mut self.call.request.messages;
        messages.push(tool_messages::assistant_message(
            iteration.output.text,
            calls,
        ));
        messages.extend(result_messages(&iteration.calls, iteration.outcomes));
        self.tools.clear_tool_choice(&mut self.call.request);
    }
}

/// Returns the result message of each call, in order.
fn result_messages(
    calls: &[DispatchedCall],
    mut outcomes: Vec<(usize, ToolResult)>,
) -> Vec<Message> {
    let answer = |(at, made): (usize, &DispatchedCall)| {
        let outcome = match &made.disposition {
            Disposition::Rejected(reason) => Err(reason.clone()),
            _ => match outcomes.iter().position(|it| it.0 == at) {
                Some(found) => outcomes.swap_remove(found).1,
                None => Err("Nothing came of it.".to_owned()),
            },
        };
        tool_messages::tool_message(&made.call, tool_messages::result_text(&outcome))
    };
    calls.iter().enumerate().map(answer).collect()
}

/// Returns whether the model's output was cut off.
fn is_truncated(output: &ModelOutput) -> bool {
    let is_whole = match &output.end {
        CallEnd::Answered(FinishReason::Length | FinishReason::ContentFilter) => false,
        CallEnd::Answered(_) => !output.is_capped,
        CallEnd::Failed(_) | CallEnd::Canceled => false,
    };
    !is_whole
}

/// Returns the output of a model whose provider code panicked.
fn output_after_panic() -> ModelOutput {
    ModelOutput {
        end: CallEnd::Failed(GenerationFailure {
            code: FailureCode::Internal,
            message: "Internal server error. It has been logged.".to_owned(),
            is_retryable: true,
        }),
        text: String::new(),
        reasoning: None,
        calls: Vec::new(),
        usage: None,
        call_usages: Vec::new(),
        is_capped: false,
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
