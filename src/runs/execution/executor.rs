//! Executes one claimed run, from building the prompt to the commit of its result.
//!
//! **Invariant:** no transaction is open while the model generates. The commit is fenced by the
//! lease: if the run was canceled, recovered or claimed again meanwhile, the text is dropped.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use agent::agent_loop::AgentLoop;
use agent::outcome::{FailureCode, GenerationFailure, GenerationOutcome};
use agent::permits::fair_permits::PermitOwner;
use agent::reasoning::Reasoning;
use agent::usage::UsageTotal;
use base::ids::{MemoryId, ProviderId, RunId};
use base::message_text;
use futures::FutureExt;
use leased_jobs::lease::CancelReason;
use llm::compatibility::refusals::Refusals;
use llm::delta::FinishReason;
use llm::tokens;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::conversations::message;
use crate::memories::memory;
use crate::providers::detected::detected_facts;
use crate::providers::detected::token_calibration::ReportedTokens;
use crate::runs::execution::agent_host::{RunHost, RunProgress};
use crate::runs::execution::chunk_sink;
use crate::runs::execution::director::speaker_choice;
use crate::runs::execution::ends::execution_result::{ExecutionResult, end_from_failure};
use crate::runs::execution::ends::reply_scripts;
use crate::runs::execution::ends::reply_scripts::UnscriptedReply;
use crate::runs::execution::ends::run_end::commit_end;
use crate::runs::execution::lease::RunLease;
use crate::runs::execution::preparation::prepared_run;
use crate::runs::execution::preparation::prepared_run::PreparedRun;
use crate::runs::scheduling::command::{ExecutionEnd, GeneratedText, SentPromptRef};
use crate::runs::scheduling::scheduler::ClaimedRun;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::scheduling::versions::continued_metadata;
use crate::runs::services::RunServices;
use crate::runs::store::run;

/// The share of the token limit for a second prompt, after a provider has refused the first one as too long,
/// in percent.
const RETRY_BUDGET_PERCENT: i64 = 80;

/// Executes a run that this node has claimed. A panic fails the run, not the worker.
pub async fn execute(context: RunServices, claimed: ClaimedRun, lease: RunLease) {
    let ClaimedRun { run, state, .. } = claimed;
    let turn = AssertUnwindSafe(execute_turn(&context, &run, &lease, state)).catch_unwind();
    let turn = turn.await.unwrap_or_else(|_| {
        let failure = GenerationFailure::internal();
        ExecutionResult::failed_before_sending(failure)
    });
    let recalled = turn.sent.as_ref().map(|it| it.recalled.clone());
    base::fail_point!("exec.before_commit");
    // If a heartbeat no longer finds the run after this point, this commit ended it.
    commit_end(&context, &run, &lease, turn).await;
    base::fail_point!("exec.after_commit");
    // If the run was ended elsewhere (another node, deletion), the stream is still open here.
    let live = &context.live_streams;
    live.close(run.conversation_id, run.id, lease.number);
    context.leases.release(run.id);
    context.wakeup.notify(); // a permit is free
    count_recalls(&context, run.id, recalled).await;
}

/// Counts the recall of the memories that were sent. Nothing depends on an exact number.
async fn count_recalls(context: &RunServices, run: RunId, recalled: Option<Arc<[MemoryId]>>) {
    let Some(recalled) = recalled.filter(|it| !it.is_empty()) else {
        return;
    };
    let now = context.clock.now();
    let counted = memory::count_recalls(&context.db, run, recalled.to_vec(), now).await;
    if let Err(error) = counted {
        tracing::debug!(%error, "failed to count recalled memories: {error}");
    }
}

/// Lets the director choose the speaker, if the run has none, and generates the reply.
async fn execute_turn(
    context: &RunServices,
    run: &run::Model,
    lease: &RunLease,
    state: ScheduleState,
) -> ExecutionResult {
    base::fail_point!("exec.after_claim");
    if run.speaker_space_membership_id.is_some() {
        return generate_reply(context, run, lease, state).await;
    }
    match speaker_choice::choose(context, run, lease, &state).await {
        Ok((run, state)) => generate_reply(context, &run, lease, state).await,
        Err(ended) => ended,
    }
}

/// Builds the prompt and generates the reply.
async fn generate_reply(
    context: &RunServices,
    run: &run::Model,
    lease: &RunLease,
    state: ScheduleState,
) -> ExecutionResult {
    let prepare = |state, percent| prepared_run::prepare(context, run, state, percent);
    let mut prepared = match prepare(state.clone(), 100).await {
        Ok(prepared) => prepared,
        Err(failure) => return ExecutionResult::failed_before_sending(failure),
    };
    let (mut outcome, mut receipts) = stream_reply(context, run, lease, &mut prepared).await;
    if receipts.is_empty()
        && is_too_long(&outcome)
        && let Ok(shorter) = prepare(state, RETRY_BUDGET_PERCENT).await
    {
        prepared = shorter;
        (outcome, receipts) = stream_reply(context, run, lease, &mut prepared).await;
    }
    calibrate_tokens(context, &prepared, &outcome).await;
    let mut sent = prepared.sent;
    let refusals = prepared.request.found_refusals.get();
    if !refusals.is_empty() {
        sent.stats.pictures_refused |= refusals.pictures;
        let (provider, model) = (prepared.provider_id, &prepared.request.model);
        remember_refusals(context, provider, model, refusals).await;
    }
    let usage = run_usage(&outcome);
    let scripted = reply_scripts::apply(context, prepared.scripts, outcome).await;
    let (outcome, unscripted) = match scripted {
        Ok(scripted) => scripted,
        Err(error) => {
            tracing::error!(%error, run.id = %run.id, "the scripts of a reply ended early: {error}");
            return ExecutionResult {
                sent: Some(sent),
                usage,
                ..ExecutionResult::failed_before_sending(GenerationFailure::internal())
            };
        }
    };
    (sent.stats.failed_scripts).extend(unscripted.failed_scripts.iter().cloned());
    let continued = prepared.continued;
    let mut end = execution_end(
        outcome,
        lease,
        sent.clone(),
        (receipts, unscripted),
        continued,
    );
    if let Some(ExecutionEnd::Succeeded(written)) = &mut end {
        written.memory_changes = prepared.memory_changes.list();
    }
    ExecutionResult {
        end,
        sent: Some(sent),
        usage,
    }
}

/// Returns whether the provider refused the prompt as too long before it returned any text.
fn is_too_long(outcome: &GenerationOutcome) -> bool {
    matches!(outcome, GenerationOutcome::Failed { failure, text, usage: None }
        if failure.code == FailureCode::ContextOverflow && text.is_empty())
}

/// Compares the estimated tokens of a prompt with those that the provider reports. Skips prompts with pictures,
/// and those with tools, which may be sent several times.
async fn calibrate_tokens(
    context: &RunServices,
    prepared: &PreparedRun,
    outcome: &GenerationOutcome,
) {
    let GenerationOutcome::Succeeded {
        usage: Some(usage), ..
    } = outcome
    else {
        return;
    };
    let request = &prepared.request;
    let mut messages = request.messages.iter();
    let is_text_only = messages.all(|it| it.attachments.is_empty()) && request.tools.is_empty();
    let Some(correction) = prepared.token_correction else {
        return;
    };
    if usage.is_estimated || !is_text_only {
        return;
    }
    let tokens = ReportedTokens {
        reported: usage.prompt_tokens,
        estimated: prepared.estimated_tokens,
        correction,
    };
    let (calibration, provider) = (&context.models.token_calibration, prepared.provider_id);
    let Some(new_correction) = calibration.observe(provider, &request.model, tokens) else {
        return;
    };
    let db = &context.db;
    let recorded =
        detected_facts::record_token_correction(db, provider, &request.model, new_correction);
    if let Err(error) = recorded.await {
        tracing::warn!(%error, "failed to record the token correction of a model: {error}");
    }
}

/// Records what the model has refused, so that the next requests are sent without it.
async fn remember_refusals(
    context: &RunServices,
    provider: ProviderId,
    model: &str,
    refusals: Refusals,
) {
    let now = context.clock.now();
    let recorded = detected_facts::record_refusals(&context.db, provider, model, refusals, now);
    if let Err(error) = recorded.await {
        tracing::warn!(%error, "failed to record what a model has refused: {error}");
    }
}

fn run_usage(outcome: &GenerationOutcome) -> Option<run::RunUsage> {
    let (GenerationOutcome::Succeeded { usage, .. }
    | GenerationOutcome::Failed { usage, .. }
    | GenerationOutcome::Canceled { usage, .. }) = outcome;
    usage.map(run::RunUsage::from)
}

async fn stream_reply(
    context: &RunServices,
    run: &run::Model,
    lease: &RunLease,
    prepared: &mut PreparedRun,
) -> (GenerationOutcome, Vec<Value>) {
    let slice = context.settings.stream_slice;
    let live = context.live_streams.clone();
    let (mut chunk_sink, flusher) =
        chunk_sink::new(live, run.conversation_id, run.id, slice, || {
            context.metrics.first_token(run, context.clock.now());
        });
    let mut limits = context.settings.call_limits;
    if let Some(message) = &prepared.continued {
        limits.max_text_bytes = limits.max_text_bytes.saturating_sub(message.content.len());
    }
    let deadline = Instant::now() + limits.total;
    let mut host = RunHost {
        context,
        run,
        lease,
        provider_id: prepared.provider_id,
        offers: &prepared.offers,
        deadline,
        sink: &mut chunk_sink,
        progress: RunProgress::default(),
    };
    let agent_loop = AgentLoop {
        host: &mut host,
        provider: prepared.provider.as_ref(),
        permits: None,
        owner: PermitOwner::Space(run.space_id),
        request: &mut prepared.request,
        trim: prepared.trim.clone(),
        limits,
        executor: &context.tool_runtime.executor,
        deadline,
        cancel: &lease.cancel.token,
    };
    let outcome = tokio::select! {
        outcome = agent_loop.run() => outcome,
        () = flusher.run() => unreachable!("the flusher never returns"),
    };
    flusher.flush();
    host.finish(outcome)
}

fn execution_end(
    outcome: GenerationOutcome,
    lease: &RunLease,
    sent: SentPromptRef,
    (receipts, unscripted): (Vec<Value>, UnscriptedReply),
    continued: Option<message::Model>,
) -> Option<ExecutionEnd> {
    let written = |text: String, usage, mut metadata, sent| match &continued {
        Some(message) => {
            unscripted.record(&mut metadata, &text, Some(message));
            let metadata = continued_metadata::merge(&message.metadata, metadata);
            let whole = format!("{}{text}", message.content);
            generated_text(whole, usage, metadata, sent)
        }
        None => {
            unscripted.record(&mut metadata, &text, None);
            generated_text(text, usage, metadata, sent)
        }
    };
    match outcome {
        GenerationOutcome::Succeeded {
            text,
            reasoning,
            usage,
            reason,
            truncated,
        } => {
            let mut metadata = message_metadata(reasoning, receipts);
            if truncated {
                metadata["truncated"] = json!(true);
            }
            if reason != FinishReason::Stop {
                metadata["finish_reason"] = json!(reason.as_str());
            }
            Some(ExecutionEnd::Succeeded(written(
                text, usage, metadata, sent,
            )))
        }
        GenerationOutcome::Failed { failure, usage, .. } => {
            Some(end_from_failure(failure, usage, Some(sent)))
        }
        GenerationOutcome::Canceled {
            text,
            reasoning,
            usage,
        } => match lease.cancel.reason() {
            // No client waits for a run.
            CancelReason::LeaseLost | CancelReason::Shutdown | CancelReason::ClientDisconnected => {
                None
            }
            CancelReason::Requested if message_text::is_blank(&text) => {
                Some(ExecutionEnd::Canceled {
                    partial: None,
                    usage: usage.map(run::RunUsage::from),
                    prompt: Some(sent),
                })
            }
            CancelReason::Requested => {
                let mut metadata = message_metadata(reasoning, receipts);
                metadata["stopped"] = json!(true);
                Some(ExecutionEnd::Canceled {
                    partial: Some(written(text, usage, metadata, sent)),
                    usage: None,
                    prompt: None,
                })
            }
        },
    }
}

/// Returns the metadata of a text: its reasoning and its tool calls.
fn message_metadata(reasoning: Option<Reasoning>, receipts: Vec<Value>) -> Value {
    let mut metadata = json!({});
    if let Some(reasoning) = reasoning {
        metadata["reasoning"] = json!(reasoning.text);
        if reasoning.is_truncated {
            metadata["reasoning_truncated"] = json!(true);
        }
    }
    if !receipts.is_empty() {
        metadata["tool_calls"] = Value::Array(receipts);
    }
    metadata
}

fn generated_text(
    content: String,
    usage: Option<UsageTotal>,
    metadata: Value,
    sent: SentPromptRef,
) -> GeneratedText {
    GeneratedText {
        token_count: tokens::count(&content),
        content,
        usage: usage.map(run::RunUsage::from),
        metadata,
        prompt: Some(sent),
        memory_changes: Arc::default(),
    }
}
