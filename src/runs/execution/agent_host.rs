//! Implements `AgentHost` for runs: streams the texts of all iterations as one message, requests
//! approvals, and records the tool calls as they are shown to users.
//!
//! **Invariant:** a call that needs approval does not run before it is approved.

use std::sync::Arc;

use agent::agent_host::{
    AgentEvent, AgentHost, DispatchedCall, DispatchedCalls, Disposition, MAX_SERVER_CALLS,
};
use agent::agent_loop::LoopOutcome;
use agent::next_action::MAX_ITERATIONS;
use agent::outcome::{CallEnd, GenerationFailure, GenerationOutcome, ModelOutput};
use agent::reasoning::Reasoning;
use agent::sink::Sink;
use agent::tools::parse_arguments;
use agent::tools::tool::ServerTool;
use agent::usage::UsageTotal;
use agent::{model_call, usage};
use async_trait::async_trait;
use base::ids::ProviderId;
use llm::request::Request;
use llm::tool::{ToolCall, ToolChoice};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::conversations::token_usage;
use crate::runs::execution::approval_wait::{ApprovalDecision, ApprovalWait};
use crate::runs::execution::lease::RunLease;
use crate::runs::execution::preparation::tool_offers::ToolOffer;
use crate::runs::scheduling::state::command_facts::token_limit_exceeded;
use crate::runs::services::RunServices;
use crate::runs::store::run;
use crate::runs::store::tool_approval::ApprovalRequest;

/// Maximum length of arguments, in bytes, that need approval: the moderator must see all of them.
const MAX_SHOWN_BYTES: usize = 16 * 1024;
/// How many bytes of an output are stored with the message.
const MAX_RECORD_BYTES: usize = 4 * 1024;

/// The agent host of one run.
pub struct RunHost<'a> {
    pub context: &'a RunServices,
    pub run: &'a run::Model,
    pub lease: &'a RunLease,
    /// The row id of the provider.
    pub provider_id: ProviderId,
    pub offers: &'a [ToolOffer],
    pub deadline: Instant,
    pub sink: &'a mut dyn Sink,
    pub progress: RunProgress,
}

/// The output of all iterations so far.
#[derive(Default)]
pub struct RunProgress {
    text: String,
    /// An earlier iteration produced text, so the next text starts a paragraph.
    needs_separator: bool,
    reasoning: Option<Reasoning>,
    usage: Option<UsageTotal>,
    n_iterations: u32,
    /// The tool calls and their results, as shown to users.
    tool_call_records: Vec<Value>,
}

/// A tool call that this server runs.
pub struct RunCall {
    display_name: String,
    needs_approval: bool,
    approved_by: Option<String>,
}

impl RunHost<'_> {
    /// Returns the outcome of the run and its tool calls, as shown to users.
    pub fn finish(self, outcome: LoopOutcome) -> (GenerationOutcome, Vec<Value>) {
        let progress = self.progress;
        let end = match outcome.stop_reason {
            None => outcome.output.end,
            // The deadline: the last iteration requests no tools, and none is for a client.
            Some(_) => {
                let limits = &self.context.settings.call_limits;
                CallEnd::Failed(model_call::deadline_exceeded(limits))
            }
        };
        let output = ModelOutput {
            end,
            text: progress.text,
            reasoning: progress.reasoning,
            ..outcome.output
        };
        let outcome = model_call::conclude(output, progress.usage);
        (outcome, progress.tool_call_records)
    }

    /// Returns a failure if this run's usage so far reaches the space's token limit, so that the
    /// model is not called again.
    async fn token_limit(&mut self) -> Option<GenerationFailure> {
        let (db, space) = (self.context.db.reader(), self.run.space_id);
        let so_far = self.progress.usage.map_or(0, UsageTotal::total);
        let found = token_usage::find_has_reached_limit(db, space, so_far).await;
        // If the database does not respond, the commit reports it.
        found.ok().flatten()?.then(token_limit_exceeded)
    }

    fn find_offer(&self, name: &str) -> Option<&ToolOffer> {
        self.offers.iter().find(|it| it.declaration.name == name)
    }

    /// Decides what to do with a tool call.
    fn dispatch(&self, mut call: ToolCall) -> DispatchedCall<RunCall> {
        let arguments = parse_arguments::parse(&call.arguments);
        let disposition = match (self.find_offer(&call.name), arguments) {
            (None, _) => Disposition::Rejected("There is no tool of this name.".to_owned()),
            (_, None) => Disposition::Rejected("The arguments are no JSON object.".to_owned()),
            (Some(offer), Some(_))
                if offer.needs_approval && call.arguments.len() > MAX_SHOWN_BYTES =>
            {
                let reason = "The arguments are too long to be shown to anybody.";
                Disposition::Rejected(reason.to_owned())
            }
            (Some(offer), Some(arguments)) => {
                let item = RunCall {
                    display_name: offer.display_name.clone(),
                    needs_approval: offer.needs_approval,
                    approved_by: None,
                };
                Disposition::Server(item, call.name.clone(), arguments)
            }
        };
        if call.id.is_empty() {
            call.id = format!("call_{}", uuid::Uuid::now_v7().simple());
        }
        DispatchedCall { call, disposition }
    }

    /// Requests approval for the calls that need it, and rejects those that do not get it.
    async fn request_approvals(&mut self, calls: &mut [DispatchedCall<RunCall>]) {
        let (mut asked, mut questions) = (Vec::new(), Vec::new());
        for DispatchedCall { disposition, .. } in calls {
            if let Disposition::Server(item, _, arguments) = &*disposition
                && item.needs_approval
            {
                questions.push(ApprovalRequest {
                    tool: item.display_name.clone(),
                    arguments: Value::Object(arguments.clone()).to_string(),
                });
                asked.push(disposition);
            }
        }
        if asked.is_empty() {
            return;
        }
        let consent = ApprovalWait {
            context: self.context,
            run: self.run,
            lease: self.lease,
            provider: self.provider_id,
        };
        let decisions = consent.request(questions, self.deadline).await;
        for (disposition, decision) in asked.into_iter().zip(decisions) {
            match decision {
                ApprovalDecision::Approved(by) => {
                    if let Disposition::Server(item, ..) = disposition {
                        item.approved_by = by;
                    }
                }
                ApprovalDecision::Refused(reason) => *disposition = Disposition::Rejected(reason),
            }
        }
    }
}

#[async_trait]
impl AgentHost for RunHost<'_> {
    type Item = RunCall;

    fn sink(&mut self) -> &mut dyn Sink {
        self
    }

    fn emit(&mut self, event: AgentEvent<'_, RunCall>) {
        if let AgentEvent::CallEnded(dispatched, result) = event {
            let offer = self.find_offer(&dispatched.call.name);
            let recorded = |it: &String| match offer {
                Some(offer) => offer.tool.recorded_output(it),
                None => it.clone(),
            };
            let arguments = &dispatched.call.arguments;
            let arguments = match offer {
                Some(offer) => offer.tool.recorded_arguments(arguments),
                None => arguments.clone(),
            };
            let result = result.as_ref().map(recorded);
            let record = tool_call_record(dispatched, &arguments, &result);
            self.progress.tool_call_records.push(record);
        }
    }

    async fn record_call(&mut self, request: &Request, output: &ModelOutput) {
        let usage = usage::count_usage(output.call_usages.clone(), request).await;
        let progress = &mut self.progress;
        progress.n_iterations += 1;
        progress.usage = usage::sum(progress.usage, usage);
        progress.needs_separator = !progress.text.is_empty();
        progress.reasoning = match (progress.reasoning.take(), output.reasoning.clone()) {
            (Some(before), Some(now)) => Some(Reasoning {
                text: format!("{}\n\n{}", before.text, now.text),
                is_truncated: before.is_truncated || now.is_truncated,
            }),
            (before, now) => before.or(now),
        };
    }

    async fn authorize(&mut self, calls: Vec<ToolCall>) -> DispatchedCalls<RunCall> {
        let progress = &self.progress;
        let is_last = progress.n_iterations >= MAX_ITERATIONS;
        let n_left = match is_last || self.offers.is_empty() {
            true => 0,
            false => MAX_SERVER_CALLS - progress.tool_call_records.len(),
        };
        let calls = calls.into_iter().take(n_left);
        let mut calls: Vec<DispatchedCall<RunCall>> = calls.map(|it| self.dispatch(it)).collect();
        self.request_approvals(&mut calls).await;
        DispatchedCalls {
            calls,
            exceeds_budget: false,
        }
    }

    fn find_tool(&self, name: &str) -> Option<Arc<dyn ServerTool>> {
        self.find_offer(name).map(|it| it.tool.clone())
    }

    async fn checkpoint(&mut self, request: &mut Request) -> Result<(), GenerationFailure> {
        if let Some(failure) = self.token_limit().await {
            return Err(failure);
        }
        let progress = &self.progress;
        let is_last = progress.n_iterations + 1 == MAX_ITERATIONS;
        if is_last || progress.tool_call_records.len() >= MAX_SERVER_CALLS {
            request.tool_choice = ToolChoice::None;
        }
        Ok(())
    }
}

impl Sink for RunHost<'_> {
    fn on_text(&mut self, text: &str) {
        let progress = &mut self.progress;
        if std::mem::take(&mut progress.needs_separator) && !text.is_empty() {
            progress.text.push_str("\n\n");
            self.sink.on_text("\n\n");
        }
        progress.text.push_str(text);
        self.sink.on_text(text);
    }
}

fn tool_call_record(
    dispatched: &DispatchedCall<RunCall>,
    arguments: &str,
    result: &Result<String, &String>,
) -> Value {
    let kept = |text: &str| text[..text.floor_char_boundary(MAX_RECORD_BYTES)].to_owned();
    let call = &dispatched.call;
    let (tool, approved_by) = match &dispatched.disposition {
        Disposition::Server(item, ..) => (item.display_name.clone(), item.approved_by.as_ref()),
        _ => (kept(&call.name), None),
    };
    let mut record = json!({ "tool": tool, "arguments": kept(arguments) });
    match result {
        Ok(output) => record["output"] = json!(kept(output)),
        Err(error) => record["error"] = json!(kept(error)),
    }
    if let Some(by) = approved_by {
        record["approved_by"] = json!(by);
    }
    record
}
