//! RunExecutor: one claimed run, from the prompt to the commit.
//!
//! **Invariant:** no transaction is open while the model speaks. The commit is fenced by the
//! lease: if the run was canceled, reaped or claimed anew meanwhile, the text is dropped.

use crate::generation::model_call;
use crate::generation::outcome::FailureCode;
use crate::generation::outcome::GenerationFailure;
use crate::generation::outcome::GenerationOutcome;
use crate::generation::reasoning::Reasoning;
use crate::generation::trim::ReplyTrimmer;
use crate::generation::usage::UsageTotal;
use crate::llm::delta::FinishReason;
use crate::llm::tokens;
use crate::prompt::context::PromptMember;
use crate::runs::command::Command;
use crate::runs::command::End;
use crate::runs::command::Refusal;
use crate::runs::command::Sent;
use crate::runs::command::Written;
use crate::runs::context::Context;
use crate::runs::error::EngineError;
use crate::runs::lease::Lease;
use crate::runs::lease::Why;
use crate::runs::preparation;
use crate::runs::preparation::Prepared;
use crate::runs::run;
use crate::runs::scheduler;
use crate::runs::scheduler::Claimed;
use crate::runs::sink;
use crate::runs::situation::Situation;
use crate::runs::tool_turn::ToolTurn;
use crate::runs::writer_memory;
use crate::runs::writer_memory::Late;
use futures::FutureExt;
use serde_json::Value;
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// Executes a run that this node has claimed. A panic on the way fails the run, not the worker.
pub async fn execute(context: Context, claimed: Claimed, lease: Lease) {
    let Claimed { run, situation, .. } = claimed;
    let turn = AssertUnwindSafe(take_turn(&context, &run, &lease, situation)).catch_unwind();
    let turn = turn.await.unwrap_or_else(|_| {
        let message = "Something went wrong on the server. It has been logged.";
        Turn {
            end: Some(failed(FailureCode::Internal, message, true, None, None)),
            usage: None,
        }
    });
    crate::fail_point!("exec.before_commit");
    // From here on a heartbeat that finds no run of ours means that this very commit ended it.
    commit(&context, &run, &lease, turn).await;
    crate::fail_point!("exec.after_commit");
    // Where somebody else ended it, on another node or with its conversation, nobody closed this.
    let live = &context.live;
    live.close(run.conversation_id, run.id, lease.number);
    context.leases.release(run.id);
    context.bell.ring(); // a place among the running ones is free
}

/// What came of a turn.
struct Turn {
    /// `None`: the run is not ours any more, or to be handed back.
    end: Option<End>,
    /// What its calls cost.
    usage: Option<run::Usage>,
}

/// Lets the speaker speak.
async fn take_turn(
    context: &Context,
    run: &run::Model,
    lease: &Lease,
    situation: Situation,
) -> Turn {
    crate::fail_point!("exec.after_claim");
    let prepared = match preparation::prepare(context, run, situation).await {
        Ok(prepared) => prepared,
        Err(failure) => {
            return Turn {
                end: Some(failed_by(failure, None, None)),
                usage: None,
            };
        }
    };
    let (outcome, receipts) = stream(context, run, lease, &prepared).await;
    let sent = prepared.sent;
    let usage = usage_of(&outcome);
    if matches!(outcome, GenerationOutcome::Canceled { .. }) && lease.why() == Why::Lost {
        keep_late(context, run, lease, (sent, usage)).await;
        return Turn { end: None, usage };
    }
    let end = end_of(outcome, lease, sent, receipts);
    Turn { end, usage }
}

fn usage_of(outcome: &GenerationOutcome) -> Option<run::Usage> {
    let (GenerationOutcome::Succeeded { usage, .. }
    | GenerationOutcome::Failed { usage, .. }
    | GenerationOutcome::Canceled { usage, .. }) = outcome;
    usage.map(run::Usage::from)
}

/// A cancel ends a run at once and does not wait for what its executor knows: what was sent and what
/// it cost is stored and counted afterwards.
async fn keep_late(
    context: &Context,
    run: &run::Model,
    lease: &Lease,
    (sent, usage): (Sent, Option<run::Usage>),
) {
    let late = Late {
        run: run.id,
        conversation: run.conversation_id,
        space: run.space_id,
        lease: lease.number,
        sent,
        usage,
        now: context.clock.now(),
    };
    for attempt in 1..=COMMIT_TRIES {
        let Err(error) = writer_memory::keep_late(&context.db, late.clone()).await else {
            return;
        };
        tracing::warn!(run.id = %run.id, attempt, %error, "what the canceled run {} sent and cost could not be stored: {error}", run.id);
        tokio::time::sleep(wait_after(attempt)).await;
    }
}

async fn stream(
    context: &Context,
    run: &run::Model,
    lease: &Lease,
    prepared: &Prepared,
) -> (GenerationOutcome, Vec<Value>) {
    let slice = context.settings.stream_slice;
    let live = context.live.clone();
    let (mut slices, flusher) = sink::slices(live, run.conversation_id, run.id, slice, || {
        context.meter.spoke(run, context.clock.now());
    });
    let Prepared {
        provider,
        provider_id,
        request,
        offers,
        ..
    } = prepared;
    let turn = ToolTurn {
        context,
        run,
        lease,
        provider: provider.as_ref(),
        provider_id: *provider_id,
        trim: trim(&prepared.speaker, &prepared.others),
        offers,
    };
    let took = tokio::select! {
        took = turn.take(request, &mut slices) => took,
        () = flusher.keep_flushing() => unreachable!("it flushes for ever"),
    };
    flusher.flush();
    (model_call::conclude(took.heard, took.usage), took.receipts)
}

/// Takes the speaker's own name from the beginning of a text, and cuts where another's begins.
pub fn trim(speaker: &PromptMember, others: &[PromptMember]) -> ReplyTrimmer {
    let names = |it: &PromptMember| std::iter::once(it.name.clone()).chain(it.aliases.clone());
    let own: Vec<String> = names(speaker).collect();
    let others: Vec<String> = others.iter().flat_map(names).collect();
    ReplyTrimmer::new(&own, &others)
}

fn end_of(
    outcome: GenerationOutcome,
    lease: &Lease,
    sent: Sent,
    receipts: Vec<Value>,
) -> Option<End> {
    match outcome {
        GenerationOutcome::Succeeded {
            text,
            reasoning,
            usage,
            reason,
            truncated,
        } => {
            let mut metadata = beside(reasoning, receipts);
            if truncated {
                metadata["truncated"] = json!(true);
            }
            if reason != FinishReason::Stop {
                metadata["finish_reason"] = json!(reason.as_str());
            }
            Some(End::Succeeded(written(text, usage, metadata, sent)))
        }
        GenerationOutcome::Failed { failure, usage, .. } => {
            Some(failed_by(failure, usage, Some(sent)))
        }
        GenerationOutcome::Canceled {
            text,
            reasoning,
            usage,
        } => match lease.why() {
            Why::Lost | Why::Closing => None,
            Why::KeepPartial if text.trim().is_empty() => Some(End::Canceled {
                partial: None,
                usage: usage.map(run::Usage::from),
                prompt: Some(sent),
            }),
            Why::KeepPartial => {
                let mut metadata = beside(reasoning, receipts);
                metadata["stopped"] = json!(true);
                Some(End::Canceled {
                    partial: Some(written(text, usage, metadata, sent)),
                    usage: None,
                    prompt: None,
                })
            }
        },
    }
}

/// The metadata of a text: what was thought first, and what was called on the way.
fn beside(reasoning: Option<Reasoning>, receipts: Vec<Value>) -> Value {
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

fn written(content: String, usage: Option<UsageTotal>, metadata: Value, sent: Sent) -> Written {
    Written {
        token_count: tokens::count(&content),
        content,
        usage: usage.map(run::Usage::from),
        metadata,
        prompt: Some(sent),
    }
}

fn failed_by(failure: GenerationFailure, usage: Option<UsageTotal>, sent: Option<Sent>) -> End {
    failed(
        failure.code,
        &failure.message,
        failure.is_retryable,
        usage,
        sent,
    )
}

fn failed(
    code: FailureCode,
    message: &str,
    retryable: bool,
    usage: Option<UsageTotal>,
    prompt: Option<Sent>,
) -> End {
    let error = run::Error {
        code: code.to_string(),
        message: message.to_owned(),
        retryable,
    };
    End::Failed {
        error,
        usage: usage.map(run::Usage::from),
        prompt,
    }
}

/// How often a commit is tried while the database does not answer: with the waits between them,
/// longer than a restart of the database takes.
const COMMIT_TRIES: u32 = 8;

fn wait_after(attempt: u32) -> Duration {
    Duration::from_millis(100 * 2_u64.pow(attempt))
}

async fn commit(context: &Context, run: &run::Model, lease: &Lease, turn: Turn) {
    let command = match (turn.end, lease.why()) {
        (Some(end), _) => Command::Ended {
            run: run.id,
            lease: lease.number,
            end: Box::new(end),
        },
        (None, Why::Closing) => Command::HandedBack {
            run: run.id,
            lease: lease.number,
            usage: turn.usage,
        },
        (None, _) => return,
    };
    for attempt in 1..=COMMIT_TRIES {
        let step = scheduler::step(context, run.conversation_id, command.clone()).await;
        match step {
            Ok(_) => return,
            // Canceled, reaped or claimed anew: whoever did it has told everyone. So has an earlier
            // try of ours whose answer was lost.
            Err(EngineError::Lost | EngineError::Refused(Refusal::AlreadyFinished)) => {
                if let Command::Ended { end, .. } = &command
                    && let Some(sent) = end.sent()
                {
                    keep_late(context, run, lease, (sent.clone(), turn.usage)).await;
                }
                return;
            }
            Err(EngineError::Refused(Refusal::NotFound)) => return,
            Err(error) => {
                tracing::warn!(run.id = %run.id, attempt, %error, "the end of run {} could not be written: {error}", run.id);
                tokio::time::sleep(wait_after(attempt)).await;
            }
        }
    }
    // Its heartbeat ends with the lease below; the reaper heals the row.
    tracing::error!(run.id = %run.id, "run {} is left to the reaper", run.id);
}
