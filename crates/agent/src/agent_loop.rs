//! The agent loop of one speaker: calls the model, runs the tools that it requests, and calls it
//! again with the results, until it requests no more tools or a limit is reached.
//!
//! **Invariant:** each tool call that the model sees again has a result: its output, or the reason
//! why there is none.
//!
//! **Invariant:** the events of an iteration end before the next one begins. The tool calls are
//! emitted after the model's output: first those that ran here, then those for the client.

use llm::provider::Provider;
use llm::request::{Message, Request};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::agent_host::{AgentEvent, AgentHost, DispatchedCalls, Disposition};
use crate::call_limits::CallLimits;
use crate::next_action::{DecisionState, NextAction};
use crate::outcome::{CallEnd, GenerationFailure, ModelOutput};
use crate::permits::fair_permits::{FairPermit, FairPermits, PermitOwner};
use crate::tools::executor::{ToolExecutor, ToolJob};
use crate::tools::tool::ToolResult;
use crate::tools::{parse_arguments, tool_messages};
use crate::trim::ReplyTrimmer;
use crate::{model_call, next_action};

/// The loop of one speaker.
pub struct AgentLoop<'a, H> {
    pub host: &'a mut H,
    pub provider: &'a dyn Provider,
    /// Limits concurrent calls of the provider.
    pub permits: Option<&'a FairPermits>,
    /// The owner for which permits of the provider and of the tools are acquired.
    pub owner: PermitOwner,
    /// Grows with each iteration.
    pub request: &'a mut Request,
    pub trim: ReplyTrimmer,
    /// The limits of one call; the texts of all calls together have the limit of one.
    pub limits: CallLimits,
    pub executor: &'a ToolExecutor,
    pub deadline: Instant,
    pub cancel: &'a CancellationToken,
}

/// How the loop ended.
#[derive(Default)]
pub struct LoopOutcome {
    /// The output of the last model call.
    pub output: ModelOutput,
    /// Why the loop was stopped early, unless the output itself states it.
    pub stop_reason: Option<&'static str>,
    /// No call is pending and nothing was cut off, so the next speaker can begin.
    pub is_complete: bool,
}

/// The current iteration.
struct Iteration<I> {
    output: ModelOutput,
    dispatched: DispatchedCalls<I>,
    /// The results of the calls, in order.
    results: Vec<ToolResult>,
    has_run_tools: bool,
}

impl<'a, H: AgentHost> AgentLoop<'a, H> {
    /// Runs all iterations.
    pub async fn run(mut self) -> LoopOutcome {
        let mut n_iterations = 1;
        let mut iteration = self.call_model().await;
        loop {
            let stop_reason = match next_action::next(&self.state(&iteration, n_iterations)) {
                NextAction::RunTools => {
                    self.run_tools(&mut iteration).await;
                    continue;
                }
                NextAction::CallModel => match self.append_results(&iteration).await {
                    Ok(()) => {
                        iteration = self.call_model().await;
                        n_iterations += 1;
                        continue;
                    }
                    Err(failure) => {
                        iteration.output.end = CallEnd::Failed(failure);
                        None
                    }
                },
                NextAction::Cancel => {
                    iteration.output.end = CallEnd::Canceled;
                    None
                }
                NextAction::Finish => None,
                NextAction::Truncate(reason) => Some(reason),
            };
            let is_complete = stop_reason.is_none()
                && iteration.dispatched.calls.is_empty()
                && !iteration.output.is_truncated();
            return LoopOutcome {
                output: iteration.output,
                stop_reason,
                is_complete,
            };
        }
    }

    fn state(&self, iteration: &Iteration<H::Item>, n_iterations: u32) -> DecisionState {
        let DispatchedCalls {
            calls,
            exceeds_budget,
        } = &iteration.dispatched;
        let is_client = |it: &Disposition<_>| matches!(it, Disposition::Client(_));
        DecisionState {
            // A finished answer is kept; whether it is still wanted is for the host to decide.
            is_cancelled: iteration.output.end == CallEnd::Canceled
                || self.cancel.is_cancelled() && !calls.is_empty(),
            has_failed: iteration.output.is_truncated(),
            is_answered: calls.is_empty() && !exceeds_budget,
            exceeds_budget: *exceeds_budget,
            waits_for_client: calls.iter().any(|it| is_client(&it.disposition)),
            is_late: Instant::now() >= self.deadline,
            n_iterations: self.limits.n_earlier_calls.saturating_add(n_iterations),
            n_pending: iteration.n_pending(),
        }
    }

    /// Calls the model and lets the host decide about its tool calls.
    async fn call_model(&mut self) -> Iteration<H::Item> {
        // The permit is held while the model runs, but not while tools run.
        let permit = self.acquire_permit().await;
        self.limits.total = self.deadline.saturating_duration_since(Instant::now());
        let (trim, sink) = (self.trim.clone(), self.host.sink());
        let calling = model_call::complete(
            self.provider,
            self.request,
            trim,
            &self.limits,
            sink,
            self.cancel,
        );
        let mut output = calling.await;
        drop(permit);
        self.host.record_call(self.request, &output).await;
        self.limits.max_text_bytes -= output.text.len().min(self.limits.max_text_bytes);
        let calls = std::mem::take(&mut output.calls);
        let mut dispatched = DispatchedCalls {
            calls: Vec::new(),
            exceeds_budget: false,
        };
        if output.is_truncated() {
            self.host.emit(AgentEvent::CallsTruncated(calls));
        } else {
            dispatched = self.host.authorize(calls).await;
        }
        for it in &mut dispatched.calls {
            // Providers that parse the arguments must not receive invalid JSON.
            if !parse_arguments::is_object(&it.call.arguments) {
                it.call.arguments = "{}".to_owned();
            }
        }
        let iteration = Iteration::new(output, dispatched);
        if iteration.n_pending() == 0 {
            self.emit_client_calls(&iteration);
        }
        iteration
    }

    /// Waits for a permit. Returns `None` if none is needed, and also if the loop ends first: the
    /// call then ends at once.
    async fn acquire_permit(&mut self) -> Option<FairPermit> {
        let permits = self.permits?;
        tokio::select! {
            () = self.cancel.cancelled() => None,
            permit = timeout_at(self.deadline, permits.acquire(self.owner)) => permit.ok(),
        }
    }

    /// Runs the server-side calls of an iteration and emits them.
    async fn run_tools(&mut self, iteration: &mut Iteration<H::Item>) {
        let (mut jobs, mut running) = (Vec::new(), Vec::new());
        for (at, it) in iteration.dispatched.calls.iter().enumerate() {
            let Disposition::Server(item, name, arguments) = &it.disposition else {
                continue;
            };
            match self.host.find_tool(name) {
                None => iteration.results[at] = Err("It is not there any more.".to_owned()),
                Some(tool) => {
                    let arguments = arguments.clone();
                    jobs.push(ToolJob { tool, arguments });
                    running.push((at, item));
                }
            }
        }
        let host = &mut *self.host;
        let show = |at: usize, update| host.emit(AgentEvent::Tool(running[at].1, update));
        let running_all = self.executor.run(self.owner, jobs, show);
        let results = tokio::select! {
            () = self.cancel.cancelled() => return,
            results = timeout_at(self.deadline, running_all) => results,
        };
        // On a timeout nothing more is emitted, and the loop ends.
        let Ok(results) = results else { return };
        for ((at, _), result) in running.into_iter().zip(results) {
            iteration.results[at] = result;
        }
        iteration.has_run_tools = true;
        self.emit_client_calls(iteration);
    }

    fn emit_client_calls(&mut self, iteration: &Iteration<H::Item>) {
        for dispatched in &iteration.dispatched.calls {
            if let Disposition::Client(item) = &dispatched.disposition {
                self.host.emit(AgentEvent::ClientCall(item));
            }
        }
    }

    /// Appends the output and the tool results to the request.
    async fn append_results(
        &mut self,
        iteration: &Iteration<H::Item>,
    ) -> Result<(), GenerationFailure> {
        let dispatched = &iteration.dispatched.calls;
        let calls = dispatched.iter().map(|it| it.call.clone()).collect();
        let text = iteration.output.text.clone();
        // The results are now the end of the prompt.
        self.request.is_prefilled = false;
        let messages = &mut self.request.messages;
        messages.push(Message {
            thoughts: iteration.output.thoughts.clone(),
            ..tool_messages::assistant_message(text, calls)
        });
        for (dispatched, result) in dispatched.iter().zip(&iteration.results) {
            let text = tool_messages::result_text(result);
            messages.push(tool_messages::tool_message(&dispatched.call, text));
            self.host.emit(AgentEvent::CallEnded(dispatched, result));
        }
        self.host.checkpoint(self.request).await
    }
}

impl<I> Iteration<I> {
    fn new(output: ModelOutput, dispatched: DispatchedCalls<I>) -> Self {
        let missing = |it: &Disposition<I>| match it {
            Disposition::Rejected(reason) => Err(reason.clone()),
            _ => Err("Nothing came of it.".to_owned()),
        };
        let results = dispatched.calls.iter().map(|it| missing(&it.disposition));
        Self {
            results: results.collect(),
            output,
            dispatched,
            has_run_tools: false,
        }
    }

    /// Returns the number of server-side calls that have not run yet.
    fn n_pending(&self) -> usize {
        let is_server = |it: &Disposition<I>| matches!(it, Disposition::Server(..));
        let calls = self.dispatched.calls.iter();
        let calls = calls.filter(|it| !self.has_run_tools && is_server(&it.disposition));
        calls.count()
    }
}
