//! Applies commands to conversations: [`step`] applies one command in one transaction, [`claim`]
//! claims many due runs in one. Every change of a conversation's schedule is made by one of them.
//!
//! A step locks the conversation, loads its state, plans, writes, commits and announces.
//!
//! **Invariant:** everything a step changes commits together or not at all; no model, tool, HTTP or
//! Redis call happens in between; nothing is announced before the commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{ConversationId, RoundId, RunId};
use futures::future::join_all;
use sea_orm::DatabaseTransaction;
use tokio::task::JoinError;

use crate::conversations::annotations::message_annotations::MessageAnnotations;
use crate::conversations::display::display_scripts::DisplayScripts;
use crate::conversations::{conversation, message};
use crate::db::backend::Backend;
use crate::regex_scripts::script_cache::ScriptCache;
use crate::runs::announcements::{announce, shown_messages};
use crate::runs::error::EngineError;
use crate::runs::execution::fairness::RunningRun;
use crate::runs::scheduling::command::{Command, CommandError};
use crate::runs::scheduling::messages::post_checks;
use crate::runs::scheduling::plan::Plan;
use crate::runs::scheduling::plan_builder::GeneratedIds;
use crate::runs::scheduling::planner;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::scheduling::state::state_cache::StateCache;
use crate::runs::scheduling::state::state_loader;
use crate::runs::services::RunServices;
use crate::runs::store::due_runs::DueRun;
use crate::runs::store::plan_writer::{PlanWriter, WrittenPlan};
use crate::runs::store::run;

/// The result of a step.
#[derive(Debug)]
pub struct StepResult {
    /// The conversation's state after the step.
    pub state: ScheduleState,
    /// The message that was appended or changed, or the existing one of a repeated post.
    pub message: Option<message::Model>,
    /// What these messages quote, and their reactions.
    pub annotations: MessageAnnotations,
    /// The scripts that change how they are shown.
    pub scripts: DisplayScripts,
    /// The run that was claimed.
    pub claimed: Option<run::Model>,
    /// Whether the command is a repeated post; nothing was changed then.
    pub is_repeated: bool,
}

impl StepResult {
    fn new(state: ScheduleState, written: &WrittenPlan) -> Self {
        Self {
            state,
            message: written.messages.last().map(|it| it.row.clone()),
            annotations: written.annotations.clone(),
            scripts: written.scripts.clone(),
            claimed: written.claimed.clone(),
            is_repeated: false,
        }
    }
}

/// Applies a command to a conversation.
///
/// Completes even if the caller is dropped: what is committed is announced.
///
/// # Errors
/// Returns the planner's rejection, a conflict, or the database's error. Nothing was changed then.
pub async fn step(
    context: &RunServices,
    conversation: ConversationId,
    command: Command,
) -> Result<StepResult, EngineError> {
    let own = context.clone();
    let task = context.shutdown.spawn(async move {
        let _in_order = own.step_locks.lock(conversation).await?;
        loop {
            let decided = decide_and_write(&own, conversation, command.clone()).await?;
            if let Some((done, written)) = decided {
                base::fail_point!("step.after_commit");
                shown_messages::run_scripts(&own, &done.state, &written).await;
                announce::announce(&own, &done.state, written);
                return Ok(done);
            }
            // A pending change of settings is applied first.
            let applied = decide_and_write(&own, conversation, Command::ApplyChanges).await?;
            if let Some((done, written)) = applied {
                base::fail_point!("step.after_commit");
                shown_messages::run_scripts(&own, &done.state, &written).await;
                announce::announce(&own, &done.state, written);
            }
        }
    });
    task.await?
}

/// A run that this node claimed.
#[derive(Debug)]
pub struct ClaimedRun {
    /// What the run counts against in the limits of this node.
    pub running: RunningRun,
    pub run: run::Model,
    /// The conversation's state at the claim, from which the prompt is built.
    pub state: ScheduleState,
}

/// The result of claiming several due runs.
#[derive(Debug, Default)]
pub struct ClaimResult {
    pub runs: Vec<ClaimedRun>,
    /// How many of them were decided: claimed, skipped, or no longer queued.
    pub n_decided: usize,
    /// A conversation that a step of this node has locked. Those that other nodes have locked are
    /// not reported.
    pub locked_conversation: Option<ConversationId>,
}

/// Claims many due runs in one transaction, each like a [`step`] with [`Command::Claim`]. Skips
/// conversations that are locked. If the transaction fails, each run is claimed separately.
///
/// # Errors
/// Returns an error when the task ended early; every other failure is logged, and the runs stay
/// queued.
pub async fn claim(context: &RunServices, due: Vec<DueRun>) -> Result<ClaimResult, JoinError> {
    let own = context.clone();
    let task = context
        .shutdown
        .spawn(async move { claim_all(&own, due).await });
    task.await
}

async fn claim_all(context: &RunServices, due: Vec<DueRun>) -> ClaimResult {
    let mut claims = ClaimResult::default();
    let mut in_order = Vec::new();
    let mut ready = Vec::new();
    for it in due {
        // Never waits: waiting while holding other locks would block their conversations.
        let Some(lock) = context.step_locks.try_lock(it.conversation_id) else {
            claims.locked_conversation = Some(it.conversation_id);
            continue;
        };
        in_order.push(lock);
        ready.push(it);
    }
    match decide_all(context, &ready).await {
        Ok((all, marked)) => {
            base::fail_point!("step.after_commit");
            claims.n_decided = all.len();
            for (done, written) in all {
                announce::announce(context, &done.state, written);
                claims.add(&ready, done);
            }
            drop(in_order);
            let marked = ready
                .iter()
                .filter(|it| marked.contains(&it.conversation_id));
            for done in join_all(marked.map(|it| claim_one(context, it))).await {
                claims.n_decided += 1;
                if let Some(done) = done {
                    claims.add(&ready, done);
                }
            }
        }
        Err(error) => {
            tracing::warn!(%error, runs = ready.len(), "failed to claim due runs together; claiming each separately");
            drop(in_order);
            let each = ready.iter().map(|it| claim_one(context, it));
            for done in join_all(each).await {
                claims.n_decided += 1;
                if let Some(done) = done {
                    claims.add(&ready, done);
                }
            }
        }
    }
    claims
}

impl ClaimResult {
    fn add(&mut self, due: &[DueRun], done: StepResult) {
        let Some(run) = done.claimed else {
            return;
        };
        let due = due.iter().find(|it| it.id == run.id);
        self.runs.extend(due.map(|it| ClaimedRun {
            running: RunningRun::from_due(it),
            run,
            state: done.state,
        }));
    }
}

async fn claim_one(context: &RunServices, due: &DueRun) -> Option<StepResult> {
    match step(context, due.conversation_id, Command::Claim { run: due.id }).await {
        Ok(done) => Some(done),
        Err(error) if error.is_failure() => {
            tracing::warn!(run.id = %due.id, %error, "failed to claim run {}", due.id);
            None
        }
        Err(_) => None, // another claim was faster
    }
}

/// The decided steps, and the conversations to which a change must be applied first.
type DecidedSteps = (Vec<(StepResult, WrittenPlan)>, Vec<ConversationId>);

/// Decides all runs whose conversation is not locked. Where a change of settings must be applied
/// first, nothing is decided and the conversation is returned.
async fn decide_all(context: &RunServices, due: &[DueRun]) -> Result<DecidedSteps, EngineError> {
    let step_context = StepContext::from_services(context);
    let runs: BTreeMap<ConversationId, RunId> =
        due.iter().map(|it| (it.conversation_id, it.id)).collect();
    let decided = context
        .db
        .write_verified(
            move |tx| {
                Box::pin(async move {
                    let locked = conversation::lock_available(tx, runs.keys().copied()).await?;
                    let (marked, ready): (Vec<_>, Vec<_>) =
                        locked.into_iter().partition(|(row, _)| row.needs_step);
                    let marked = marked.into_iter().map(|(row, _)| row.id).collect();
                    let states = state_loader::load_claims(tx, &step_context.states, ready).await?;
                    let all = step_context.decide_claims(tx, states, &runs).await?;
                    Ok((all, marked))
                })
            },
            |(all, _): &DecidedSteps| all.iter().find_map(|(_, it)| it.proof.clone()),
        )
        .await;
    match &decided {
        Ok((all, _)) => all
            .iter()
            .for_each(|(done, it)| remember(context, &done.state, it)),
        Err(_) => due
            .iter()
            .for_each(|it| context.states.remove(it.conversation_id)),
    }
    decided
}

/// Returns when no step of this node holds the conversation's lock.
pub async fn wait_until_unlocked(context: &RunServices, conversation: ConversationId) {
    context.step_locks.wait_until_unlocked(conversation).await;
}

/// Returns `None` if nothing was decided because a change of settings must be applied first.
async fn decide_and_write(
    context: &RunServices,
    conversation: ConversationId,
    command: Command,
) -> Result<Option<(StepResult, WrittenPlan)>, EngineError> {
    let step_context = StepContext::from_services(context);
    let decided = context
        .db
        .write_verified(
            move |tx| {
                Box::pin(async move {
                    let state =
                        state_loader::load(tx, &step_context.states, conversation, &command)
                            .await?
                            .ok_or(CommandError::NotFound)?;
                    if state.conversation.needs_step
                        && !matches!(command, Command::ApplyChanges | Command::SpaceClosed(_))
                    {
                        return Ok(None);
                    }
                    step_context.decide(tx, state, &command).await.map(Some)
                })
            },
            |decided: &Option<(StepResult, WrittenPlan)>| {
                decided.as_ref().and_then(|(_, it)| it.proof.clone())
            },
        )
        .await;
    match &decided {
        Ok(Some((done, written))) => remember(context, &done.state, written),
        _ => context.states.remove(conversation),
    }
    decided
}

/// Keeps the state and the messages after a committed step.
fn remember(context: &RunServices, state: &ScheduleState, written: &WrittenPlan) {
    context.states.store(state, written);
    let messages = written.messages.iter().map(|it| &it.row);
    let row = &state.conversation;
    context
        .prompt_caches
        .histories
        .apply_step(row, written.rev_before, messages);
}

/// What a step needs besides the database: time, node, database backend and known states.
#[derive(Clone)]
struct StepContext {
    now: Timestamp,
    node: Arc<str>,
    backend: Backend,
    states: StateCache,
    scripts: ScriptCache,
}

impl StepContext {
    fn from_services(context: &RunServices) -> Self {
        Self {
            now: context.clock.now(),
            node: context.node.clone(),
            backend: context.db.backend(),
            states: context.states.clone(),
            scripts: context.prompt_caches.scripts.clone(),
        }
    }

    /// Plans and writes. The conversation must be locked.
    async fn decide(
        &self,
        tx: &DatabaseTransaction,
        state: ScheduleState,
        command: &Command,
    ) -> Result<(StepResult, WrittenPlan), EngineError> {
        if let Some(first) = post_checks::find_repeated(tx, &state, command).await? {
            let annotations = MessageAnnotations::load(tx, [&first]).await?;
            let written = WrittenPlan {
                annotations,
                scripts: shown_messages::load_scripts(tx, &self.scripts, &state).await?,
                ..WrittenPlan::default()
            };
            let mut done = StepResult::new(state, &written);
            (done.message, done.is_repeated) = (Some(first), true);
            return Ok((done, WrittenPlan::default()));
        }
        post_checks::require_attachments(tx, &state, command).await?;
        let plan = self.plan(&state, command)?;
        post_checks::record_time(tx, &state, command, self.now).await?;
        let (mut state, mut written) = self.writer(tx).write(state, plan).await?;
        let target = state.facts.target().map(|it| &it.row);
        let shown = written.messages.iter().map(|it| &it.row);
        let shown: Vec<&message::Model> = shown.chain(target).collect();
        if !shown.is_empty() {
            written.scripts = shown_messages::load_scripts(tx, &self.scripts, &state).await?;
        }
        written.annotations = MessageAnnotations::load(tx, shown).await?;
        if state.conversation.needs_step {
            conversation::clear_needs_step(tx, &[state.conversation.id]).await?;
            state.conversation.needs_step = false;
        }
        Ok((StepResult::new(state, &written), written))
    }

    /// Plans and writes the claims of these runs, those that change nothing else together. The
    /// conversations must be locked.
    async fn decide_claims(
        &self,
        tx: &DatabaseTransaction,
        states: Vec<ScheduleState>,
        runs: &BTreeMap<ConversationId, RunId>,
    ) -> Result<Vec<(StepResult, WrittenPlan)>, EngineError> {
        let writer = self.writer(tx);
        let (mut written, mut claims) = (Vec::new(), Vec::new());
        for state in states {
            let run = runs[&state.conversation.id];
            let plan = self.plan(&state, &Command::Claim { run })?;
            match plan.is_only_claim() {
                true => claims.push(state),
                false => written.push(writer.write(state, plan).await?),
            }
        }
        written.extend(writer.write_claims(claims).await?);
        let results = written.into_iter();
        Ok(results
            .map(|(state, it)| (StepResult::new(state, &it), it))
            .collect())
    }

    fn plan(&self, state: &ScheduleState, command: &Command) -> Result<Plan, CommandError> {
        let fresh = GeneratedIds {
            seed: rand::random(),
            round: RoundId::new(),
            run: RunId::new(),
        };
        planner::plan(state, command, fresh, self.now)
    }

    fn writer<'a>(&'a self, tx: &'a DatabaseTransaction) -> PlanWriter<'a> {
        PlanWriter {
            tx,
            now: self.now,
            node: &self.node,
            backend: self.backend,
        }
    }
}
