//! Plans the runs of the copilot: the AI writes for a human who turned it on, for a limited number
//! of steps; the characters answer each text as if the human had written it.
//!
//! **Invariant:** only the plan that commits a text spends its step. So no crash, second attempt or
//! second node spends a step twice, or writes without spending one.
//!
//! **Invariant:** a copilot run has no round, unless a person forced it: a human whose copilot is on takes
//! no turns.

use std::cmp::Reverse;

use base::ids::{ConversationId, MembershipId};

use crate::rounds::round;
use crate::runs::scheduling::plan::{EnqueueRun, MessageRef, PlanChange};
use crate::runs::scheduling::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::scheduling::speaker_choice;
use crate::runs::scheduling::speaker_choice::{TriggerMessage, TurnTakers};
use crate::runs::store::run;
use crate::spaces::membership;
use crate::spaces::membership::{CopilotMode, MembershipKind, MembershipStatus, Participation};
use crate::spaces::space::ReplyOrder;

/// Returns whether the scheduler may let this human's copilot write here without a request.
pub fn can_run(membership: &membership::Model, conversation: ConversationId) -> bool {
    membership.kind == MembershipKind::Human
        && membership.participation == Participation::Active
        && membership.can_speak(conversation)
}

/// Starts a copilot that was turned on, if the conversation is idle.
pub fn start(builder: &mut PlanBuilder, membership: MembershipId) {
    let membership = active_copilots(builder)
        .into_iter()
        .find(|it| it.id == membership);
    if let Some(membership) = membership
        && is_idle(builder)
    {
        enqueue_after_tail(builder, membership, run::RunReason::CopilotStart);
    }
}

/// Queues the next copilot after a character's message whose round has no slot left. Returns
/// whether a copilot is next; if `is_paused` is set, it is not queued and a person must resume it.
pub fn follow_up(
    builder: &mut PlanBuilder,
    trigger_message: &TriggerMessage,
    is_paused: bool,
) -> bool {
    let by_ai = builder
        .member(trigger_message.author)
        .is_some_and(|it| it.kind == MembershipKind::Character);
    let Some(membership) = next_copilot(builder).filter(|_| by_ai) else {
        return false;
    };
    if !is_paused {
        let reason = run::RunReason::CopilotFollowup;
        let trigger = Some(MessageRef::Appended);
        enqueue(builder, membership, reason, trigger);
    }
    true
}

/// Queues the next copilot for Resume, or for Retry after its run failed, if the conversation is
/// idle. Returns whether a run was queued.
pub fn continue_after(builder: &mut PlanBuilder) -> bool {
    let Some(membership) = next_copilot(builder).filter(|_| is_idle(builder)) else {
        return false;
    };
    enqueue_after_tail(builder, membership, run::RunReason::CopilotContinue);
    true
}

/// Spends a step for a copilot's message. The characters answer it, unless a newer round or run is
/// planned or a person has stopped the copilot.
pub fn spend_step(builder: &mut PlanBuilder, trigger_message: &TriggerMessage, was_stopped: bool) {
    builder.push(PlanChange::SpendCopilotStep(trigger_message.author));
    if was_stopped || builder.round.is_some() || builder.queued.is_some() {
        return;
    }
    let choices = speaker_choice::after_user_message(builder, trigger_message, TurnTakers::All);
    if choices.is_empty() {
        return;
    }
    builder.new_round(round::RoundKind::UserTurn, choices, MessageRef::Appended);
    builder.start_current_slot(NextSlot::new(
        run::RunKind::UserTurn,
        run::RunReason::UserMessage,
    ));
}

/// Cancels the queued run of a membership whose human now writes without a copilot.
pub fn taken_over_by_user(builder: &mut PlanBuilder, membership: MembershipId) {
    let speaks_alone = reason_to_cancel(builder, membership) == run::RunCancelReason::CopilotOff;
    let waits = builder
        .queued
        .as_ref()
        .is_some_and(|it| it.speaker_space_membership_id == Some(membership));
    if speaks_alone && waits {
        builder.cancel_queued(run::RunCancelReason::CopilotOff);
    }
}

/// Returns why the run of a member that may no longer speak is canceled.
pub fn reason_to_cancel(builder: &PlanBuilder, speaker: MembershipId) -> run::RunCancelReason {
    let is_copilot_off = builder.member(speaker).is_some_and(|member| {
        member.kind == MembershipKind::Human
            && member.status == MembershipStatus::Active
            && member.copilot_mode == CopilotMode::None
    });
    if is_copilot_off {
        run::RunCancelReason::CopilotOff
    } else {
        run::RunCancelReason::SpeakerUnavailable
    }
}

/// Returns whether the scheduler queued this run for a copilot.
pub fn is_copilot_run(builder: &PlanBuilder, run: &run::Model) -> bool {
    run.kind == run::RunKind::UserTurn
        && builder
            .speaker(run)
            .is_some_and(|it| it.kind == MembershipKind::Human)
}

/// Returns the active copilot with the most steps left, so that several alternate.
fn next_copilot<'a>(builder: &PlanBuilder<'a>) -> Option<&'a membership::Model> {
    let steps = |it: &&membership::Model| Reverse(it.copilot_remaining_steps);
    active_copilots(builder).into_iter().min_by_key(steps)
}

/// Returns the active copilots in roster order.
fn active_copilots<'a>(builder: &PlanBuilder<'a>) -> Vec<&'a membership::Model> {
    if builder.state.space.reply_order == ReplyOrder::Manual {
        return Vec::new();
    }
    let conversation = builder.state.conversation.id;
    let members = builder.state.members.iter();
    members.filter(|it| can_run(it, conversation)).collect()
}

fn is_idle(builder: &PlanBuilder) -> bool {
    builder.round.is_none() && builder.queued.is_none() && builder.running.is_none()
}

fn enqueue_after_tail(
    builder: &mut PlanBuilder,
    membership: &membership::Model,
    reason: run::RunReason,
) {
    let trigger = builder.seen_tail().map(|it| MessageRef::Message(it.id));
    enqueue(builder, membership, reason, trigger);
}

fn enqueue(
    builder: &mut PlanBuilder,
    membership: &membership::Model,
    reason: run::RunReason,
    trigger: Option<MessageRef>,
) {
    let left = membership.copilot_remaining_steps.unwrap_or_default();
    let mut run = builder.new_run(membership.id, run::RunKind::UserTurn, reason);
    run.debug.chosen_because = Some(format!("copilot, steps left: {left}"));
    builder.enqueue(EnqueueRun {
        run,
        trigger,
        expected_tail: None,
    });
}
