//! Copilot: the AI speaks as a human who asked for it, a few steps long; the characters answer each
//! text as if that human had spoken.
//!
//! **Invariant:** a step is spent by the plan that commits its text, and by nothing else. So no
//! crash, no second attempt and no second node spends it twice, or speaks without it.
//!
//! **Invariant:** a run of the copilot has no round: a human is never a slot.

use std::cmp::Reverse;

use crate::ids::{ConversationId, MembershipId};
use crate::rounds::round;
use crate::runs::plan::{EnqueueRun, MessageRef, PlanChange};
use crate::runs::plan_builder::{NextSlot, PlanBuilder};
use crate::runs::speaker_choice::TriggerMessage;
use crate::runs::{run, speaker_choice};
use crate::spaces::membership;
use crate::spaces::membership::{CopilotMode, MembershipKind, MembershipStatus, Participation};
use crate::spaces::space::ReplyOrder;

/// May the scheduler let this human's copilot speak here by itself?
pub fn can_run(membership: &membership::Model, conversation: ConversationId) -> bool {
    membership.kind == MembershipKind::Human
        && membership.participation == Participation::Active
        && membership.can_speak(conversation)
}

/// A human has turned it on: it begins, unless something else goes on or waits for a person.
pub fn start(builder: &mut PlanBuilder, membership: MembershipId) {
    let seat = active_copilots(builder)
        .into_iter()
        .find(|it| it.id == membership);
    if let Some(seat) = seat
        && is_idle(builder)
    {
        enqueue_after_tail(builder, seat, run::RunReason::CopilotStart);
    }
}

/// A character has spoken, and nobody is left of its round; says whether a copilot goes on here.
/// With `rests` it waits for a person, who resumes.
pub fn follow_up(
    builder: &mut PlanBuilder,
    trigger_message: &TriggerMessage,
    is_paused: bool,
) -> bool {
    let by_ai = builder
        .member(trigger_message.author)
        .is_some_and(|it| it.kind == MembershipKind::Character);
    let Some(seat) = next_copilot(builder).filter(|_| by_ai) else {
        return false;
    };
    if !is_paused {
        let reason = run::RunReason::CopilotFollowup;
        let trigger = Some(MessageRef::Appended);
        enqueue(builder, seat, reason, trigger);
    }
    true
}

/// Somebody presses Resume, or Retry after its run failed, where no round waits; says whether it
/// goes on.
pub fn continue_after(builder: &mut PlanBuilder) -> bool {
    let Some(seat) = next_copilot(builder).filter(|_| is_idle(builder)) else {
        return false;
    };
    enqueue_after_tail(builder, seat, run::RunReason::CopilotContinue);
    true
}

/// Its words become a message: that spends a step, and the characters answer, unless something
/// newer is planned or a person has stopped it.
pub fn spend_step(builder: &mut PlanBuilder, trigger_message: &TriggerMessage, was_stopped: bool) {
    builder.push(PlanChange::SpendCopilotStep(trigger_message.author));
    if was_stopped || builder.round.is_some() || builder.queued.is_some() {
        return;
    }
    let choices = speaker_choice::after_user_message(builder, trigger_message);
    if choices.is_empty() {
        return;
    }
    builder.new_round(round::RoundKind::UserTurn, choices, MessageRef::Appended);
    builder.queue_current_slot(NextSlot::new(
        run::RunKind::UserTurn,
        run::RunReason::UserMessage,
    ));
}

/// A seat has changed: what waits to be said for a human who speaks for themselves again, goes.
pub fn taken_over_by_user(builder: &mut PlanBuilder, membership: MembershipId) {
    let speaks_alone = reason_to_cancel(builder, membership) == run::RunCancelReason::CopilotOff;
    let waits = builder
        .queued
        .as_ref()
        .is_some_and(|it| it.speaker_space_membership_id == membership);
    if speaks_alone && waits {
        builder.cancel_queued(run::RunCancelReason::CopilotOff);
    }
}

/// Why the run of a member that may no longer speak is canceled.
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

/// Whether this run's words are a copilot's, by its own plans.
pub fn is_copilot_run(builder: &PlanBuilder, run: &run::Model) -> bool {
    run.kind == run::RunKind::UserTurn
        && builder
            .member(run.speaker_space_membership_id)
            .is_some_and(|it| it.kind == MembershipKind::Human)
}

/// Whose copilot speaks next: that with the most steps left, so that several take turns.
fn next_copilot<'a>(builder: &PlanBuilder<'a>) -> Option<&'a membership::Model> {
    let steps = |it: &&membership::Model| Reverse(it.copilot_remaining_steps);
    active_copilots(builder).into_iter().min_by_key(steps)
}

/// In the order of the roster.
fn active_copilots<'a>(builder: &PlanBuilder<'a>) -> Vec<&'a membership::Model> {
    if builder.state.space.reply_order == ReplyOrder::Manual {
        return Vec::new();
    }
    let here = builder.state.conversation.id;
    let members = builder.state.members.iter();
    members.filter(|it| can_run(it, here)).collect()
}

fn is_idle(builder: &PlanBuilder) -> bool {
    builder.round.is_none() && builder.queued.is_none() && builder.running.is_none()
}

fn enqueue_after_tail(
    builder: &mut PlanBuilder,
    membership: &membership::Model,
    reason: run::RunReason,
) {
    let trigger = builder
        .state
        .tail
        .as_ref()
        .map(|it| MessageRef::Message(it.id));
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
