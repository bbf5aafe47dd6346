//! Copilot: the AI speaks as a human who asked for it, a few steps long; the characters answer each
//! text as if that human had spoken.
//!
//! **Invariant:** a step is spent by the plan that commits its text, and by nothing else. So no
//! crash, no second attempt and no second node spends it twice, or speaks without it.
//!
//! **Invariant:** a run of the copilot has no round: a human is never a slot.

use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::rounds::round;
use crate::runs::choosing;
use crate::runs::choosing::Said;
use crate::runs::draft::Draft;
use crate::runs::draft::Turn;
use crate::runs::plan::Change;
use crate::runs::plan::Enqueue;
use crate::runs::plan::Reference;
use crate::runs::run;
use crate::spaces::membership;
use crate::spaces::membership::CopilotMode;
use crate::spaces::membership::MembershipKind;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;
use crate::spaces::space::ReplyOrder;
use std::cmp::Reverse;

/// May the scheduler let this human's copilot speak here by itself?
pub fn may_play(seat: &membership::Model, conversation: ConversationId) -> bool {
    seat.kind == MembershipKind::Human
        && seat.participation == Participation::Active
        && seat.can_speak(conversation)
}

/// A human has turned it on: it begins, unless something else goes on or waits for a person.
pub fn start(d: &mut Draft, seat: MembershipId) {
    let seat = players(d).into_iter().find(|it| it.id == seat);
    if let Some(seat) = seat
        && is_idle(d)
    {
        plan(d, seat, run::RunReason::CopilotStart);
    }
}

/// A character has spoken, and nobody is left of its round; says whether a copilot goes on here.
/// With `rests` it waits for a person, who resumes.
pub fn follow_up(d: &mut Draft, said: &Said, rests: bool) -> bool {
    let by_ai = d
        .member(said.author)
        .is_some_and(|it| it.kind == MembershipKind::Character);
    let Some(seat) = next(d).filter(|_| by_ai) else {
        return false;
    };
    if !rests {
        let reason = run::RunReason::CopilotFollowup;
        let trigger = Some(Reference::Appended);
        enqueue(d, seat, reason, trigger);
    }
    true
}

/// Somebody presses Resume, or Retry after its run failed, where no round waits; says whether it
/// goes on.
pub fn go_on(d: &mut Draft) -> bool {
    let Some(seat) = next(d).filter(|_| is_idle(d)) else {
        return false;
    };
    plan(d, seat, run::RunReason::CopilotContinue);
    true
}

/// Its words become a message: that spends a step, and the characters answer, unless something
/// newer is planned or a person has stopped it.
pub fn spoke(d: &mut Draft, said: &Said, was_stopped: bool) {
    d.push(Change::CopilotStep(said.author));
    if was_stopped || d.round.is_some() || d.queued.is_some() {
        return;
    }
    let choices = choosing::after_human(d, said);
    if choices.is_empty() {
        return;
    }
    d.new_round(round::RoundKind::UserTurn, choices, Reference::Appended);
    d.queue_current_slot(Turn::new(
        run::RunKind::UserTurn,
        run::RunReason::UserMessage,
    ));
}

/// A seat has changed: what waits to be said for a human who speaks for themselves again, goes.
pub fn taken_over(d: &mut Draft, seat: MembershipId) {
    let speaks_alone = reason_to_cancel(d, seat) == run::RunCancelReason::CopilotOff;
    let waits = d
        .queued
        .as_ref()
        .is_some_and(|it| it.speaker_space_membership_id == seat);
    if speaks_alone && waits {
        d.cancel_queued(run::RunCancelReason::CopilotOff);
    }
}

/// Why the run of a member that may no longer speak is canceled.
pub fn reason_to_cancel(d: &Draft, speaker: MembershipId) -> run::RunCancelReason {
    let is_copilot_off = d.member(speaker).is_some_and(|member| {
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
pub fn is_its_run(d: &Draft, run: &run::Model) -> bool {
    run.kind == run::RunKind::UserTurn
        && d.member(run.speaker_space_membership_id)
            .is_some_and(|it| it.kind == MembershipKind::Human)
}

/// Whose copilot speaks next: that with the most steps left, so that several take turns.
fn next<'a>(d: &Draft<'a>) -> Option<&'a membership::Model> {
    let steps = |it: &&membership::Model| Reverse(it.copilot_remaining_steps);
    players(d).into_iter().min_by_key(steps)
}

/// In the order of the roster.
fn players<'a>(d: &Draft<'a>) -> Vec<&'a membership::Model> {
    if d.s.space.reply_order == ReplyOrder::Manual {
        return Vec::new();
    }
    let here = d.s.conversation.id;
    let members = d.s.members.iter();
    members.filter(|it| may_play(it, here)).collect()
}

fn is_idle(d: &Draft) -> bool {
    d.round.is_none() && d.queued.is_none() && d.running.is_none()
}

fn plan(d: &mut Draft, seat: &membership::Model, reason: run::RunReason) {
    let trigger = d.s.tail.as_ref().map(|it| Reference::Message(it.id));
    enqueue(d, seat, reason, trigger);
}

fn enqueue(
    d: &mut Draft,
    seat: &membership::Model,
    reason: run::RunReason,
    trigger: Option<Reference>,
) {
    let left = seat.copilot_remaining_steps.unwrap_or_default();
    let mut run = d.blank_run(seat.id, run::RunKind::UserTurn, reason);
    run.debug.chosen_because = Some(format!("copilot, steps left: {left}"));
    d.enqueue(Enqueue {
        run,
        trigger,
        expected_tail: None,
    });
}
