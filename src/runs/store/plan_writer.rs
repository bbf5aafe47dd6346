//! Writes the changes of a plan to the database, updates the loaded state to match the rows, and
//! collects what must be announced.
//!
//! **Invariant:** each durable event takes the next `rev` of the conversation, in the order in
//! which the events are announced; the conversation's row is written once, at the end.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{MessageId, RoundId};
use sea_orm::{DatabaseTransaction, DbErr};

use crate::conversations::annotations::message_annotations::MessageAnnotations;
use crate::conversations::display::display_scripts::DisplayScripts;
use crate::conversations::{conversation, message};
use crate::db::backend::{Backend, StaleAfter};
use crate::db::commit_verification::CommitProof;
use crate::memories::tool::pending_changes::RequestedChange;
use crate::prompt::record::run_prompt;
use crate::runs::error::EngineError;
use crate::runs::scheduling::plan::{EnqueueRun, MessageRef, Plan, PlanChange};
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::{queue, run};
use crate::spaces::{copilot_steps, membership};

/// The transaction, time and node with which a plan is written.
pub struct PlanWriter<'a> {
    pub tx: &'a DatabaseTransaction,
    pub now: Timestamp,
    pub node: &'a str,
    pub backend: Backend,
}

/// What to announce after the commit, and what is still to be written.
#[derive(Debug, Default)]
pub struct WrittenPlan {
    /// The `rev` of the conversation before the step.
    pub rev_before: i64,
    /// Appended and changed messages.
    pub messages: Vec<WrittenMessage>,
    /// What these messages quote, and their reactions.
    pub annotations: MessageAnnotations,
    /// The scripts that change how they are shown.
    pub scripts: DisplayScripts,
    /// Memberships whose copilot used a step.
    pub memberships: Vec<membership::Model>,
    /// Runs that ended, each with the `rev` of its event unless its message is the event.
    pub ended: Vec<(run::Model, Option<i64>)>,
    /// Runs that were queued again.
    pub released: Vec<run::Model>,
    pub queued: Option<(run::Model, i64)>,
    /// Set when state, round, queued or running run changed.
    pub queue_rev: Option<i64>,
    pub claimed: Option<run::Model>,
    /// The running run that got its speaker.
    pub chosen: Option<run::Model>,
    /// Whether the turn of a person began.
    pub has_new_turn: bool,
    /// Runs whose executor must stop and commit the text so far.
    pub cancel_requested: Vec<run::Model>,
    /// Lets the caller verify whether the transaction committed.
    pub proof: Option<CommitProof>,
    /// The pending write of the active round's row; `None` if the row is up to date.
    pub pending_round_write: Option<RoundWrite>,
    /// The changes of memories that a run requested, which are written last.
    pub pending_memory_changes: Option<Arc<[RequestedChange]>>,
    /// The first version of the space's memories that changed memories have.
    pub memory_version: Option<i64>,
    /// The first and the last `seq` of the changed messages that summaries in use cover.
    pub outdated_summaries: Option<(i64, i64)>,
}

/// How the row of the active round must be written, if it has changed.
#[derive(Clone, Copy, Debug)]
pub enum RoundWrite {
    Insert,
    Update,
}

/// A message to announce.
#[derive(Clone, Debug)]
pub struct WrittenMessage {
    pub row: message::Model,
    /// Whether it was appended or restored.
    pub is_new: bool,
    pub n_swipes: i64,
}

impl PlanWriter<'_> {
    /// Writes the plan and returns the new state.
    ///
    /// # Errors
    /// Returns [`EngineError::Conflict`] when a run is not in the state that the plan expects.
    pub async fn write(
        &self,
        mut schedule: ScheduleState,
        plan: Plan,
    ) -> Result<(ScheduleState, WrittenPlan), EngineError> {
        let before = (schedule.conversation.rev, schedule.conversation.last_seq);
        let turn_before = current_turn(&schedule);
        let mut written = WrittenPlan {
            rev_before: before.0,
            ..WrittenPlan::default()
        };
        let mut queue_changed = plan.enqueue.is_some();
        for change in plan.changes {
            queue_changed |= self
                .apply_change(&mut schedule, &mut written, change)
                .await?;
            base::fail_point!("step.between", ?);
        }
        // The round is written before the queued run, because the run refers to it.
        self.write_round(&schedule, &mut written).await?;
        written.has_new_turn = current_turn(&schedule).is_some_and(|it| Some(it) != turn_before);
        // Messages are announced first, so the ends get later numbers.
        for (run, rev) in &mut written.ended {
            // The message of a successful run is its event.
            *rev = (run.status != run::RunStatus::Succeeded).then(|| next_rev(&mut schedule));
        }
        if let Some(enqueue) = plan.enqueue {
            self.enqueue_run(&mut schedule, &mut written, enqueue)
                .await?;
        }
        if queue_changed {
            written.queue_rev = Some(next_rev(&mut schedule));
        }
        self.learn_from_new_messages(&mut schedule, &written, before.1)
            .await?;
        self.change_memories(&schedule, &mut written).await?;
        if before != (schedule.conversation.rev, schedule.conversation.last_seq) {
            written.proof =
                conversation::save_counters(self.tx, &schedule.conversation, self.backend).await?;
        }
        Ok((schedule, written))
    }

    /// Writes one change; returns whether it changes the queue.
    async fn apply_change(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        change: PlanChange,
    ) -> Result<bool, EngineError> {
        match change {
            PlanChange::Append(new) => self.append_message(schedule, written, new).await?,
            PlanChange::SetVisibility { visibility, .. } => {
                self.update_target_message(schedule, written, |it| it.visibility = visibility)
                    .await?;
            }
            PlanChange::SetRemembered { remember, .. } => {
                self.update_target_message(schedule, written, |it| it.is_remembered = remember)
                    .await?;
            }
            PlanChange::SetOutOfCharacter { is_ooc, .. } => {
                self.set_out_of_character(schedule, written, is_ooc).await?;
            }
            PlanChange::SetContent(edit) => self.set_content(schedule, written, edit).await?,
            PlanChange::HideMessages(turn) => self.hide_messages(schedule, written, turn).await?,
            PlanChange::AddSwipe(text) => self.add_swipe(schedule, written, text).await?,
            PlanChange::ShowSwipe { swipe, by } => {
                self.show_swipe(schedule, written, (swipe, by)).await?;
            }
            PlanChange::StorePrompt(run, record) => {
                self.store_prompt(schedule, run, &record).await?
            }
            PlanChange::StoreEffects(effects) => self.store_effects(schedule, &effects).await?,
            PlanChange::ChangeMemories(changes) => written.pending_memory_changes = Some(changes),
            PlanChange::SpendCopilotStep(membership) => {
                let spent = copilot_steps::spend_copilot_step(self.tx, membership).await?;
                let mut members = schedule.members.iter_mut();
                if let (Some(membership), Some(it)) =
                    (spent, members.find(|it| it.id == membership))
                {
                    *it = membership.clone();
                    written.memberships.push(membership);
                }
            }
            PlanChange::AutoModeTurns(n) => schedule.conversation.auto_mode_turns = n,
            PlanChange::RequestCancel(run) => {
                require_updated(queue::request_cancel(self.tx, run.id, self.now).await?)?;
                if let Some(running) = schedule.running.as_mut() {
                    running.cancel_requested_at = Some(self.now);
                    running.keep_partial = true;
                }
                written.cancel_requested.push(run);
                return Ok(true);
            }
            PlanChange::StartRound(new) => {
                self.start_round(schedule, written, &new);
                return Ok(true);
            }
            PlanChange::ChangeRound(change) => {
                let appended = resolve_message(MessageRef::Appended, schedule);
                self.change_round(schedule, written, |round| change.apply(round, appended));
                return Ok(true);
            }
            PlanChange::EndRound { status, reason } => {
                self.end_round(schedule, written, (status, reason)).await?;
                return Ok(true);
            }
            other => {
                self.apply_run_change(schedule, written, other).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn apply_run_change(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        change: PlanChange,
    ) -> Result<(), EngineError> {
        let (tx, now) = (self.tx, self.now);
        match change {
            PlanChange::ClaimRun(run) => self.claim_run(schedule, written, run).await?,
            PlanChange::ChooseSpeaker(run) => {
                // The row, because the loaded run may have an old heartbeat.
                let chosen = queue::set_speaker(tx, &run).await?;
                let chosen = chosen.ok_or(EngineError::Conflict)?;
                schedule.running = Some(chosen.clone());
                written.chosen = Some(chosen);
            }
            PlanChange::SkipQueued(run) => {
                require_updated(queue::skip(tx, &run, now).await?)?;
                charge_tokens(schedule, &run);
                self.record_left_queue(schedule, written, run, run::RunStatus::Skipped, None);
            }
            PlanChange::CancelQueued(mut run) => {
                run.set_superseding_message(schedule.tail.as_ref());
                require_updated(queue::cancel_queued(tx, &run, now).await?)?;
                charge_tokens(schedule, &run);
                self.record_left_queue(schedule, written, run, run::RunStatus::Canceled, None);
            }
            PlanChange::FailQueued(run, error) => {
                require_updated(queue::fail_queued(tx, &run, &error, now).await?)?;
                charge_tokens(schedule, &run);
                self.record_left_queue(schedule, written, run, run::RunStatus::Failed, Some(error));
            }
            PlanChange::Finish { mut run, end } => {
                run.set_superseding_message(schedule.tail.as_ref());
                // The row, because the loaded run may have an old heartbeat.
                let ended = queue::finish(tx, &run, run.lease, &end, now).await?;
                let ended = ended.ok_or(EngineError::Conflict)?;
                charge_tokens(schedule, &ended);
                schedule.running = None;
                written.ended.push((ended, None));
            }
            PlanChange::ExpireLease {
                run,
                end,
                silent_for_ms,
            } => {
                let stale = StaleAfter {
                    after_ms: silent_for_ms,
                    backend: self.backend,
                };
                require_updated(queue::expire(tx, &run, run.lease, &end, now, &stale).await?)?;
                charge_tokens(schedule, &run);
                base::fail_point!("reap.mid", ?);
                self.record_stopped(schedule, written, run, end);
            }
            PlanChange::ExpectTail { mut run, tail } => {
                let tail = tail.and_then(|it| resolve_message(it, schedule));
                run.debug.expected_last_message_id = tail;
                require_updated(queue::set_expected_tail(tx, &run).await?)?;
                schedule.queued = Some(run);
            }
            PlanChange::ReleaseRun(run) => {
                require_updated(queue::release(tx, &run, run.lease).await?)?;
                schedule.running = None;
                let mut queued = run.clone();
                queued.status = run::RunStatus::Queued;
                (queued.worker_id, queued.cutoff_seq) = (None, None);
                (queued.started_at, queued.heartbeat_at) = (None, None);
                queued.waiting_for = None;
                schedule.queued = Some(queued);
                written.released.push(run);
            }
            _ => {}
        }
        Ok(())
    }

    async fn claim_run(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        run: run::Model,
    ) -> Result<(), EngineError> {
        let backend = self.backend;
        let claimed = queue::claim(self.tx, run.id, self.node, self.now, backend).await?;
        let claimed = claimed.ok_or(EngineError::Conflict)?;
        schedule.queued = None;
        schedule.running = Some(claimed.clone());
        written.claimed = Some(claimed);
        Ok(())
    }

    fn record_left_queue(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        mut run: run::Model,
        status: run::RunStatus,
        error: Option<run::RunError>,
    ) {
        schedule.queued = None;
        run.status = status;
        run.finished_at = Some(self.now);
        run.error = error;
        written.ended.push((run, None));
    }

    fn record_stopped(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        mut run: run::Model,
        end: queue::RunEnd,
    ) {
        schedule.running = None;
        run.status = end.status();
        run.finished_at = Some(self.now);
        run.waiting_for = None;
        if let queue::RunEnd::Failed(error) = end {
            run.error = Some(error);
        }
        written.ended.push((run, None));
    }

    async fn enqueue_run(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        enqueue: EnqueueRun,
    ) -> Result<(), DbErr> {
        let mut run = enqueue.run;
        run.debug.trigger_message_id = enqueue.trigger.and_then(|it| resolve_message(it, schedule));
        run.debug.expected_last_message_id = enqueue
            .expected_tail
            .and_then(|it| resolve_message(it, schedule));
        schedule.conversation.last_run_seq += 1;
        run.run_seq = schedule.conversation.last_run_seq;
        // Here, because each number is assigned once; not every run reaches its end.
        if run.run_seq % run_prompt::PRUNE_INTERVAL == 0 {
            run_prompt::prune(self.tx, schedule.conversation.id, 1).await?;
        }
        let run = queue::enqueue(self.tx, run).await?;
        schedule.queued = Some(run.clone());
        written.queued = Some((run, next_rev(schedule)));
        Ok(())
    }
}

/// Adds the tokens of a run that ends to those of the conversation, whose row is written at the end.
fn charge_tokens(schedule: &mut ScheduleState, run: &run::Model) {
    let tokens = run.usage.map_or(0, run::RunUsage::total);
    let used = &mut schedule.conversation.tokens_used;
    *used = used.saturating_add(tokens);
}

/// Returns the turn of a person for which the round waits: round, position and start.
fn current_turn(schedule: &ScheduleState) -> Option<(RoundId, i64, Timestamp)> {
    let round = schedule.round.as_ref()?;
    Some((round.id, round.cursor, round.turn_started_at?))
}

pub(super) fn next_rev(schedule: &mut ScheduleState) -> i64 {
    schedule.conversation.rev += 1;
    schedule.conversation.rev
}

/// Returns the message that is referred to; an appended one is the tail by now.
pub(super) fn resolve_message(
    reference: MessageRef,
    schedule: &ScheduleState,
) -> Option<MessageId> {
    match reference {
        MessageRef::Message(id) => Some(id),
        MessageRef::Appended => schedule.tail.as_ref().map(|it| it.id),
    }
}

fn require_updated(moved: bool) -> Result<(), EngineError> {
    if moved {
        Ok(())
    } else {
        Err(EngineError::Conflict)
    }
}
