//! The agent loop of a run: calls the model, runs the tools that it requests, and calls it again
//! with the results until it requests no more. The texts of all iterations form one message.
//!
//! **Invariant:** each tool call gets a result: its output, or the reason why there is none. A call
//! that needs approval does not run before it is approved.

use std::borrow::Cow;

use sea_orm::EntityTrait;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::generation::call_limits::CallLimits;
use crate::generation::outcome::{CallEnd, GenerationFailure, ModelOutput};
use crate::generation::reasoning::Reasoning;
use crate::generation::sink::Sink;
use crate::generation::trim::ReplyTrimmer;
use crate::generation::usage::UsageTotal;
use crate::generation::{model_call, usage};
use crate::ids::ProviderId;
use crate::llm::delta::FinishReason;
use crate::llm::provider::Provider;
use crate::llm::request::Request;
use crate::llm::tool::{ToolCall, ToolChoice};
use crate::runs::approval_wait::{ApprovalDecision, ApprovalWait};
use crate::runs::completion::token_limit_exceeded;
use crate::runs::lease::RunLease;
use crate::runs::run;
use crate::runs::services::RunServices;
use crate::runs::tool_approval::ApprovalRequest;
use crate::runs::tool_offers::ToolOffer;
use crate::spaces::space;
use crate::tools::executor::ToolJob;
use crate::tools::tool::{ToolArguments, ToolResult};
use crate::tools::{parse_arguments, tool_messages};

/// Maximum number of model calls in one run. The last one may not request tools.
const MAX_ITERATIONS: usize = 10;
/// Maximum number of tool calls in one run.
const MAX_CALLS: usize = 32;
/// Maximum length of arguments, in bytes, that need approval: the moderator must see all of them.
const MAX_SHOWN_BYTES: usize = 16 * 1024;
/// How many bytes of an output are stored with the message.
const MAX_RECORD_BYTES: usize = 4 * 1024;

/// The agent loop of one run.
pub struct RunAgentLoop<'a> {
    pub context: &'a RunServices,
    pub run: &'a run::Model,
    pub lease: &'a RunLease,
    pub provider: &'a dyn Provider,
    /// The row id of the provider.
    pub provider_id: ProviderId,
    pub trim: ReplyTrimmer,
    pub offers: &'a [ToolOffer],
}

/// The result of the loop.
pub struct RunLoopOutcome {
    /// The texts of all iterations, combined.
    pub output: ModelOutput,
    /// The usage of all model calls.
    pub usage: Option<UsageTotal>,
    /// The tool calls and their results, as shown to users.
    pub tool_call_records: Vec<Value>,
}

/// A tool call that the model requested.
struct PlannedCall<'a> {
    call: ToolCall,
    /// What to run, or the reason why the call is not run.
    plan: Result<(&'a ToolOffer, ToolArguments), String>,
    approved_by: Option<String>,
}

impl RunAgentLoop<'_> {
    /// Runs the loop and streams its output into `sink`.
    pub async fn generate(&self, request: &Request, sink: &mut dyn Sink) -> RunLoopOutcome {
        let mut watches = self.context.settings.call_limits;
        let until = Instant::now() + watches.total;
        let mut request = Cow::Borrowed(request);
        if !self.offers.is_empty() {
            let tools = self.offers.iter().map(|it| it.declaration.clone());
            request.to_mut().tools = tools.collect();
        }
        let mut combined = CombinedOutput::new(sink);
        let mut receipts: Vec<Value> = Vec::new();
        for step in 1.. {
            if step == MAX_ITERATIONS || receipts.len() >= MAX_CALLS {
                request.to_mut().tool_choice = ToolChoice::None;
            }
            if step > 1
                && let Some(failure) = self.token_limit(combined.usage).await
            {
                combined.end = Some(CallEnd::Failed(failure));
                break;
            }
            watches.total = until.saturating_duration_since(Instant::now());
            let mut output = self.complete(&request, &watches, &mut combined).await;
            let answered = std::mem::take(&mut output.call_usages);
            combined.usage =
                usage::sum(combined.usage, usage::count_usage(answered, &request).await);
            watches.max_text_bytes -= output.text.len().min(watches.max_text_bytes);
            let calls = std::mem::take(&mut output.calls);
            let text = output.text.clone();
            combined.add(output);
            let may_call = !self.offers.is_empty() && request.tool_choice != ToolChoice::None;
            if calls.is_empty() || !may_call || !combined.is_complete() {
                break;
            }
            let left = MAX_CALLS - receipts.len();
            let calls = calls.into_iter().take(left);
            let mut made: Vec<PlannedCall> = calls.map(|it| self.plan_call(it)).collect();
            let Some(outcomes) = self.run(&mut made, until).await else {
                combined.end = self.cut_off_end();
                break;
            };
            let calls = made.iter().map(|it| it.call.clone()).collect();
            let messages = &mut request.to_mut().messages;
            messages.push(tool_messages::assistant_message(text, calls));
            for (made, outcome) in made.iter().zip(&outcomes) {
                let result = tool_messages::result_text(outcome);
                messages.push(tool_messages::tool_message(&made.call, result));
                receipts.push(tool_call_record(made, outcome));
            }
        }
        RunLoopOutcome {
            usage: combined.usage,
            output: combined.finish(),
            tool_call_records: receipts,
        }
    }

    /// Returns a failure if this run's usage so far reaches the space's token limit, so that the
    /// model is not called again.
    async fn token_limit(&self, so_far: Option<UsageTotal>) -> Option<GenerationFailure> {
        let db = self.context.db.reader();
        let space = space::Entity::find_by_id(self.run.space_id).one(db).await;
        // If the database does not respond, the commit reports it.
        let space = space.ok().flatten()?;
        let so_far = so_far.map_or(0, UsageTotal::total);
        space
            .has_reached_token_limit(so_far)
            .then(token_limit_exceeded)
    }

    async fn complete(
        &self,
        request: &Request,
        watches: &CallLimits,
        combined: &mut CombinedOutput<'_>,
    ) -> ModelOutput {
        let (trim, token) = (self.trim.clone(), &self.lease.cancel.token);
        model_call::complete(self.provider, request, trim, watches, combined, token).await
    }

    /// Decides what to do with a tool call.
    fn plan_call(&self, mut call: ToolCall) -> PlannedCall<'_> {
        let found = self
            .offers
            .iter()
            .find(|it| it.declaration.name == call.name);
        let plan = match (found, parse_arguments::parse(&call.arguments)) {
            (None, _) => Err("There is no tool of this name.".to_owned()),
            (_, None) => Err("The arguments are no JSON object.".to_owned()),
            (Some(offer), Some(_))
                if offer.needs_approval && call.arguments.len() > MAX_SHOWN_BYTES =>
            {
                Err("The arguments are too long to be shown to anybody.".to_owned())
            }
            (Some(offer), Some(arguments)) => Ok((offer, arguments)),
        };
        // Providers that parse the arguments must not receive invalid JSON.
        if !parse_arguments::is_object(&call.arguments) {
            call.arguments = "{}".to_owned();
        }
        if call.id.is_empty() {
            call.id = format!("call_{}", uuid::Uuid::now_v7().simple());
        }
        PlannedCall {
            call,
            plan,
            approved_by: None,
        }
    }

    /// Runs the planned calls and returns the result of each. Returns `None` if the run ends first.
    async fn run(&self, made: &mut [PlannedCall<'_>], until: Instant) -> Option<Vec<ToolResult>> {
        self.request_approvals(made, until).await?;
        let (mut jobs, mut places) = (Vec::new(), Vec::new());
        for (at, made) in made.iter().enumerate() {
            if let Ok((offer, arguments)) = &made.plan {
                places.push(at);
                jobs.push(ToolJob {
                    tool: offer.tool.clone(),
                    arguments: arguments.clone(),
                });
            }
        }
        let running = self.context.tool_runtime.executor.run(jobs, |_, _| {});
        let ran = tokio::select! {
            () = self.lease.cancel.token.cancelled() => return None,
            ran = timeout_at(until, running) => ran.ok()?,
        };
        let not_run = |it: &PlannedCall| match &it.plan {
            Ok(_) => Err("Nothing came of it.".to_owned()),
            Err(why) => Err(why.clone()),
        };
        let mut outcomes: Vec<ToolResult> = made.iter().map(not_run).collect();
        for (at, outcome) in places.into_iter().zip(ran) {
            outcomes[at] = outcome;
        }
        Some(outcomes)
    }

    /// Requests approval for the calls that need it. Returns `None` if the run ends first.
    async fn request_approvals(&self, made: &mut [PlannedCall<'_>], until: Instant) -> Option<()> {
        let is_asked =
            |it: &&mut PlannedCall| matches!(&it.plan, Ok((offer, _)) if offer.needs_approval);
        let mut asked: Vec<&mut PlannedCall> = made.iter_mut().filter(is_asked).collect();
        if asked.is_empty() {
            return Some(());
        }
        let questions = asked.iter().filter_map(|it| {
            let (offer, arguments) = it.plan.as_ref().ok()?;
            Some(ApprovalRequest {
                tool: offer.display_name.clone(),
                arguments: Value::Object(arguments.clone()).to_string(),
            })
        });
        let consent = ApprovalWait {
            context: self.context,
            run: self.run,
            lease: self.lease,
            provider: self.provider_id,
        };
        let verdicts = consent.request(questions.collect(), until).await?;
        for (made, verdict) in asked.iter_mut().zip(verdicts) {
            match verdict {
                ApprovalDecision::Approved(by) => made.approved_by = by,
                ApprovalDecision::Refused(why) => made.plan = Err(why),
            }
        }
        Some(())
    }

    /// Returns how a run ends whose tool calls were interrupted.
    fn cut_off_end(&self) -> Option<CallEnd> {
        match self.lease.cancel.token.is_cancelled() {
            true => Some(CallEnd::Canceled),
            false => Some(CallEnd::Failed(model_call::deadline_exceeded(
                &self.context.settings.call_limits,
            ))),
        }
    }
}

fn tool_call_record(made: &PlannedCall, outcome: &ToolResult) -> Value {
    let kept = |text: &str| text[..text.floor_char_boundary(MAX_RECORD_BYTES)].to_owned();
    let tool = match &made.plan {
        Ok((offer, _)) => offer.display_name.clone(),
        Err(_) => kept(&made.call.name),
    };
    let mut receipt = json!({ "tool": tool, "arguments": kept(&made.call.arguments) });
    match outcome {
        Ok(output) => receipt["output"] = json!(kept(output)),
        Err(error) => receipt["error"] = json!(kept(error)),
    }
    if let Some(by) = &made.approved_by {
        receipt["approved_by"] = json!(by);
    }
    receipt
}

/// Combines the output of all iterations.
struct CombinedOutput<'a> {
    sink: &'a mut dyn Sink,
    text: String,
    /// An earlier iteration produced text, so the next text starts a paragraph.
    needs_separator: bool,
    reasoning: Option<Reasoning>,
    usage: Option<UsageTotal>,
    end: Option<CallEnd>,
    is_capped: bool,
}

impl<'a> CombinedOutput<'a> {
    fn new(sink: &'a mut dyn Sink) -> Self {
        Self {
            sink,
            text: String::new(),
            needs_separator: false,
            reasoning: None,
            usage: None,
            end: None,
            is_capped: false,
        }
    }

    /// Adds the result of an iteration whose text was streamed already.
    fn add(&mut self, output: ModelOutput) {
        self.needs_separator = !self.text.is_empty();
        self.reasoning = match (self.reasoning.take(), output.reasoning) {
            (Some(before), Some(now)) => Some(Reasoning {
                text: format!("{}\n\n{}", before.text, now.text),
                is_truncated: before.is_truncated || now.is_truncated,
            }),
            (before, now) => before.or(now),
        };
        self.is_capped = output.is_capped;
        self.end = Some(output.end);
    }

    /// Returns whether the model finished without reaching a limit or a filter.
    fn is_complete(&self) -> bool {
        let is_cut =
            |it: &FinishReason| matches!(it, FinishReason::Length | FinishReason::ContentFilter);
        !self.is_capped && matches!(&self.end, Some(CallEnd::Answered(reason)) if !is_cut(reason))
    }

    fn finish(self) -> ModelOutput {
        ModelOutput {
            end: self.end.unwrap_or(CallEnd::Canceled),
            text: self.text,
            reasoning: self.reasoning,
            calls: Vec::new(),
            usage: None,
            call_usages: Vec::new(),
            is_capped: self.is_capped,
        }
    }
}

impl Sink for CombinedOutput<'_> {
    fn on_text(&mut self, text: &str) {
        if std::mem::take(&mut self.needs_separator) && !text.is_empty() {
            self.text.push_str("\n\n");
            self.sink.on_text("\n\n");
        }
        self.text.push_str(text);
        self.sink.on_text(text);
    }

    fn on_reasoning(&mut self, text: &str) -> bool {
        self.sink.on_reasoning(text)
    }
}
