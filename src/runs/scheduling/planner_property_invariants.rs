//! Asserts the invariants of a single plan, given the command, the state before, the plan, and the
//! fixture after it was applied.

use base::clock::Timestamp;

use crate::conversations::message;
use crate::rounds::round;
use crate::rounds::round::RoundState;
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::plan::{EnqueueRun, NewRound, Plan, PlanChange};
use crate::runs::scheduling::planner::fixture::PlannerFixture;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::run;
use crate::runs::store::run::{RunCancelReason, RunKind, RunReason};
use crate::spaces::membership;
use crate::spaces::membership::CopilotMode;
use crate::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

#[path = "planner_property_director_tests.rs"]
mod property_director;
#[path = "planner_property_ooc_tests.rs"]
mod property_ooc;
#[path = "planner_property_turn_tests.rs"]
mod property_turns;
#[path = "planner_property_whisper_tests.rs"]
mod property_whispers;

pub use property_director::assert_speaker_of_slot;
pub use property_turns::assert_round_valid;
pub use property_whispers::{is_input, whisper_to};

/// Limit of a burst, whatever the debounce of these tests.
const MAX_BURST_MS: i64 = 600_000;

/// Asserts the invariants of a plan.
pub fn assert_plan_valid(
    before: &ScheduleState,
    command: &Command,
    plan: &Plan,
    fixture: &PlannerFixture,
) {
    if let Some(enqueue) = &plan.enqueue {
        assert_speaker_allowed(enqueue, fixture);
        assert_delay(enqueue, command, fixture);
        assert_expected_tail(enqueue, fixture);
    }
    for change in &plan.changes {
        match change {
            PlanChange::StartRound(new) => assert_new_round_valid(new, plan, fixture),
            PlanChange::ClaimRun(run) => assert_claim_valid(before, run, fixture),
            PlanChange::SkipQueued(run) => assert!(run.debug.skipped_because.is_some()),
            PlanChange::SpendCopilotStep(member) => {
                let left = |s: &ScheduleState| {
                    let member = s.member(*member).expect("the member exists");
                    member.copilot_remaining_steps.unwrap_or_default()
                };
                assert_eq!(
                    left(&fixture.state),
                    (left(before) - 1).max(0),
                    "a text should use one step"
                );
            }
            _ => {}
        }
    }
    property_whispers::assert_audiences(before, command, plan, fixture);
    property_director::assert_choice(before, command, fixture);
    assert_command_effect(before, command, plan, fixture);
    assert_newer_rounds_unchanged(before, command, fixture);
    assert_copilot_steps_left(fixture);
}

/// Asserts that a planned speaker may speak. A repeated run may have lost its speaker: then the
/// claim skips it.
fn assert_speaker_allowed(enqueue: &EnqueueRun, fixture: &PlannerFixture) {
    let run = &enqueue.run;
    let Some(speaker) = run.speaker_space_membership_id else {
        return; // the director chooses
    };
    let member = fixture.state.member(speaker);
    let member = member.expect("the speaker is a member");
    match run.reason {
        RunReason::Recovered | RunReason::Retry => {}
        // A post keeps a forced run, resumed or not, and the claim skips a speaker that has left since.
        RunReason::ForceTalk | RunReason::Generate if run.round_id.is_some() => {}
        RunReason::Resume if run.kind == RunKind::ForceTalk => {}
        _ if run.kind.is_scheduled() && member.kind == membership::MembershipKind::Character => {
            assert!(member.can_be_scheduled(), "{run:?}");
        }
        _ => assert!(member.can_speak(fixture.state.conversation.id), "{run:?}"),
    }
}

/// Asserts that auto mode waits its delay unless a user triggered the run; everything else is due
/// immediately or after the debounce.
fn assert_delay(enqueue: &EnqueueRun, command: &Command, fixture: &PlannerFixture) {
    let run = &enqueue.run;
    let debounce = fixture.state.space.user_turn_debounce_ms;
    let is_post = matches!(command, Command::MessagePosted(_));
    let is_delayed = run.run_after.is_some();
    let is_next_slot = run.reason == RunReason::NextSlot;
    assert!(
        !is_post || is_delayed == (debounce > 0 && !is_next_slot),
        "null without debounce: {run:?}"
    );
    let wait = run.run_after.map_or(0, |at| at.ms_since(fixture.now));
    match command {
        Command::MessagePosted(_) => assert!((0..=MAX_BURST_MS).contains(&wait), "{run:?}"),
        // A queued turn keeps its due time.
        Command::EditQueue(_) => assert!(wait >= 0),
        _ => {
            let by_itself = matches!(run.reason, RunReason::AutoMode | RunReason::NextSlot);
            let delay = match run.kind == RunKind::AutoMode && by_itself {
                true => fixture.state.space.auto_mode_delay_ms,
                false => 0,
            };
            assert_eq!(wait, delay, "the wait: {run:?}");
        }
    }
}

/// Asserts that auto mode turns, regenerates, continues and later slots are planned with an expected
/// tail, and regenerates in place without one.
fn assert_expected_tail(enqueue: &EnqueueRun, fixture: &PlannerFixture) {
    let run = &enqueue.run;
    if run.debug.in_place {
        assert_eq!(run.kind, RunKind::Regenerate);
        assert!(enqueue.expected_tail.is_none(), "{run:?}");
        return;
    }
    let is_later_slot = run.slot_position.is_some_and(|it| it > 0);
    let builds_on = run.kind == RunKind::AutoMode || run.kind.adds_version() || is_later_slot;
    // Without a message that the schedule reads there is no tail.
    if builds_on && fixture.messages.iter().any(message::Model::is_scheduled) {
        assert!(enqueue.expected_tail.is_some(), "no expected_tail: {run:?}");
    }
}

/// Asserts that a round has speakers who can be scheduled, one or several according to the space's
/// settings; in auto mode no character replies to itself unless the space allows it.
fn assert_new_round_valid(new: &NewRound, plan: &Plan, fixture: &PlannerFixture) {
    let NewRound { kind, slots, .. } = new;
    let space = &fixture.state.space;
    assert!(!slots.is_empty(), "a round needs a speaker");
    assert!(
        space.reply_order != ReplyOrder::Manual,
        "nobody is scheduled"
    );
    if space.replies_per_turn == RepliesPerTurn::One {
        assert_eq!(slots.iter().filter(|it| !it.is_forced).count().max(1), 1);
    }
    let (forced, chosen): (Vec<_>, Vec<_>) = slots.iter().partition(|it| it.is_forced);
    assert!(
        forced.len() <= 1
            && chosen
                .iter()
                .all(|it| Some(it.speaker) != forced.first().map(|it| it.speaker))
    );
    for slot in chosen {
        assert!(!slot.reason.is_empty(), "each slot has a reason");
        let Some(speaker) = slot.speaker else {
            assert!(space.reply_order == ReplyOrder::Director, "{new:?}");
            continue;
        };
        let member = fixture.state.member(speaker).expect("the member exists");
        assert!(
            member.can_be_scheduled() || property_turns::takes_turn(new, member, plan, fixture)
        );
    }
    if *kind == round::RoundKind::AutoMode {
        assert!(space.auto_mode_enabled);
        let mut changes = plan.changes.iter();
        let answered = changes.find_map(|it| match it {
            PlanChange::Append(new) => Some(new),
            _ => None,
        });
        let answered = answered.expect("auto mode answers a text of this plan");
        assert_eq!(
            answered.role,
            message::MessageRole::Assistant,
            "auto mode answers an AI message"
        );
        let answers_itself = slots.iter().any(|it| it.speaker == Some(answered.author));
        assert!(space.allow_self_responses || !answers_itself);
    }
}

/// Asserts that a claimed run was due, that its tail is the expected one, and that it sees the
/// newest message.
fn assert_claim_valid(before: &ScheduleState, run: &run::Model, fixture: &PlannerFixture) {
    assert!(before.running.is_none());
    let at = run.run_after.unwrap_or(Timestamp(0));
    assert!(at <= fixture.now, "claimed before it was due");
    if let Some(expected) = run.debug.expected_last_message_id {
        assert_eq!(before.tail.as_ref().map(|it| it.id), Some(expected));
    }
    if run.debug.in_place {
        let target =
            (fixture.messages.iter()).find(|it| Some(it.id) == run.debug.target_message_id);
        assert!(target.is_some_and(|it| it.visibility != message::Visibility::Hidden));
    }
    let running = fixture.state.running.as_ref().expect("a run is running");
    assert_eq!(
        running.cutoff_seq,
        Some(fixture.state.conversation.last_seq)
    );
}

/// Asserts the effect of each command.
fn assert_command_effect(
    before: &ScheduleState,
    command: &Command,
    plan: &Plan,
    fixture: &PlannerFixture,
) {
    let s = &fixture.state;
    let state = s.round.as_ref().map(|it| it.state);
    let queued = s.queued.as_ref();
    match command {
        Command::MessagePosted(post) if post.is_out_of_character() => {
            property_ooc::assert_only_appended(before, plan, fixture);
        }
        // Checked by `assert_audiences`.
        Command::MessagePosted(_) if !is_input(command, plan) => {}
        Command::SetOutOfCharacter { .. } => {
            property_ooc::assert_turns_unchanged(before, fixture);
            property_ooc::assert_still_valid(before, fixture);
        }
        Command::MessagePosted(post) => {
            let is_busy = before.queued.is_some() || before.running.is_some();
            let policy = s.space.during_generation_user_input_policy;
            assert!(!is_busy || policy != InputPolicy::Reject, "rejected");
            assert!(
                policy != InputPolicy::Restart || s.running.is_none(),
                "restarted"
            );
            if property_turns::keeps_round(before, fixture) {
                property_turns::assert_round_kept(before, post.author, fixture);
                return;
            }
            if plan.enqueue.is_some() {
                let queued = queued.expect("just queued");
                let is_forced = queued.kind == RunKind::ForceTalk;
                assert!(is_forced || queued.kind == RunKind::UserTurn, "{queued:?}");
                assert_eq!(queued.slot_position, Some(0));
                assert_eq!(queued.round_id, s.round.as_ref().map(|it| it.id));
            }
            assert_nothing_discarded(before, fixture);
        }
        Command::Stop { keep_partial } => {
            assert!(queued.is_none(), "a run is queued after a stop");
            assert!(
                *keep_partial || s.running.is_none(),
                "a run is running after a stop"
            );
            assert!(
                !matches!(state, Some(RoundState::Generating | RoundState::Waiting)),
                "the round is generating after a stop"
            );
        }
        Command::Pause => assert!(!matches!(
            state,
            Some(RoundState::Generating | RoundState::Waiting)
        )),
        Command::ForceTalk(_) => {
            assert_eq!(queued.map(|it| it.kind), Some(RunKind::ForceTalk));
            assert!(s.round.is_none() && s.running.is_some() == before.running.is_some());
        }
        Command::Continue(_) => {
            assert_eq!(queued.map(|it| it.kind), Some(RunKind::Continue));
            assert!(s.round.is_none() && s.running.is_none());
            property_whispers::assert_newest(queued.expect("just queued"), fixture);
        }
        Command::ApplyChanges => {
            let is_auto = queued.is_some_and(|it| it.kind == RunKind::AutoMode);
            assert!(
                s.space.auto_mode_enabled || !is_auto,
                "a turn is queued although auto mode is off"
            );
            let is_scheduled = queued.is_some_and(|it| it.kind.is_scheduled());
            let is_manual = s.space.reply_order == ReplyOrder::Manual;
            assert!(
                !is_manual || !is_scheduled,
                "a scheduled run is queued in manual order"
            );
            property_turns::assert_can_take_turn(s);
        }
        Command::SpaceClosed(_) => {
            assert!(queued.is_none() && s.running.is_none() && state.is_none())
        }
        Command::EditMessage(_) | Command::SelectSwipe { .. } => {
            assert_schedule_unchanged(before, plan, s);
        }
        Command::RegenerateInPlace(_) => {
            let queued = queued.expect("just queued");
            assert!(queued.debug.in_place && s.running.is_none() && s.round.is_none());
        }
        Command::CancelRun { run } => {
            let active = [&s.queued, &s.running].into_iter().flatten();
            assert!(active.into_iter().all(|it| it.id != *run), "canceled");
        }
        _ => {}
    }
}

/// Asserts that an edit or the selection of a swipe changes one text and nothing else.
fn assert_schedule_unchanged(before: &ScheduleState, plan: &Plan, after: &ScheduleState) {
    let is_text =
        |it: &PlanChange| matches!(it, PlanChange::SetContent(_) | PlanChange::ShowSwipe { .. });
    assert!(plan.enqueue.is_none() && plan.changes.iter().all(is_text));
    assert_eq!(
        (&before.queued, &before.running),
        (&after.queued, &after.running)
    );
    assert_eq!(before.round, after.round);
    assert_eq!(
        before.conversation.last_run_seq,
        after.conversation.last_run_seq
    );
}

/// Rules 17 to 19: a post keeps a queued forced run, and ends a queued regenerate or continue with an
/// event that names the post.
fn assert_nothing_discarded(before: &ScheduleState, fixture: &PlannerFixture) {
    let Some(run) = &before.queued else {
        return;
    };
    let queued = fixture.state.queued.as_ref();
    match run.kind {
        RunKind::ForceTalk if is_for_others(run, fixture) => {
            let ended = fixture.ended.iter().any(|it| it.id == run.id);
            assert!(ended || queued == Some(run), "the forced turn is lost");
        }
        RunKind::ForceTalk => {
            let kept = queued.expect("the forced turn is still queued");
            assert_eq!((kept.id, kept.kind), (run.id, RunKind::ForceTalk));
            // A turn for which the director has not chosen takes the first speaker of the post.
            let speaker = |run: &run::Model| run.speaker_space_membership_id;
            if speaker(run).is_some() {
                assert_eq!(speaker(kept), speaker(run));
                assert_eq!(kept.debug.chosen_because, run.debug.chosen_because);
            }
        }
        RunKind::Regenerate | RunKind::Continue => {
            assert!(queued.is_none_or(|it| it.id != run.id), "a new run");
            let ended = fixture.ended.iter().find(|it| it.id == run.id);
            let ended = ended.expect("the run should have ended");
            let seen = |it: &&message::Model| it.is_seen_by_all_of(run.audience.as_ref());
            let post = fixture.messages.last().filter(seen).map(|it| it.id);
            assert_eq!(
                (ended.canceled_because, ended.superseded_by_message_id),
                (Some(RunCancelReason::SupersededByMessage), post)
            );
        }
        RunKind::UserTurn | RunKind::AutoMode => {}
    }
}

/// Returns whether the newest post has another audience than a run.
fn is_for_others(run: &run::Model, fixture: &PlannerFixture) -> bool {
    let post = fixture.messages.last();
    post.is_some_and(|it| it.audience != run.audience)
}

/// Asserts that a run whose round is over changes no other round.
fn assert_newer_rounds_unchanged(
    before: &ScheduleState,
    command: &Command,
    fixture: &PlannerFixture,
) {
    let (Command::RunEnded { .. } | Command::LeaseExpired { .. }) = command else {
        return;
    };
    let Some(round) = &before.round else {
        return;
    };
    let run = before.running.as_ref().expect("a run was running");
    let is_turn = run.round_id == Some(round.id) && run.slot_position == Some(round.cursor);
    if !is_turn {
        assert_eq!(
            fixture.state.round.as_ref(),
            Some(round),
            "the end of {run:?} changed another round"
        );
    }
}

/// Asserts that a copilot without steps is off.
fn assert_copilot_steps_left(fixture: &PlannerFixture) {
    for member in &fixture.state.members {
        let is_on = member.copilot_mode == CopilotMode::Full;
        assert!(
            !is_on || member.copilot_remaining_steps > Some(0),
            "{member:?}"
        );
    }
}

#[path = "planner_property_invariants_tests.rs"]
mod tests;
