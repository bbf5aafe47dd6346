//! Decides what a command changes: returns a plan, or the reason why the command is rejected. No
//! I/O: state, random values and time are arguments.
//!
//! The rules for posts and forced replies are here; the others are in `completion.rs` (claims and ends
//! of runs), `controls.rs` (controls for users) and in the files that they call.
//!
//! **Invariant:** what follows a run depends on the run's kind, round and slot, never on the
//! current settings of its author.

use base::clock::Timestamp;
use base::ids::MembershipId;

use crate::rounds::round;
use crate::runs::scheduling::command::{Command, CommandError, ForcedTurn};
use crate::runs::scheduling::director::speaker_chosen;
use crate::runs::scheduling::messages::new_post::{NewPost, PostKind};
use crate::runs::scheduling::messages::{greetings, narration, out_of_character, post_audience};
use crate::runs::scheduling::plan::{
    EnqueueRun, MessageRef, NewMessage, NewSlot, Plan, PlanChange,
};
use crate::runs::scheduling::plan_builder::{GeneratedIds, PlanBuilder};
use crate::runs::scheduling::speaker_choice::{TriggerMessage, TurnTakers};
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::scheduling::turns::human_turns;
use crate::runs::scheduling::versions::continue_message;
use crate::runs::scheduling::{
    auto_mode, completion, controls, copilot, queue_edit, regenerate, regenerate_last_turn,
    speaker_choice,
};
use crate::runs::store::run;
use crate::runs::store::run::RunCancelReason;
use crate::spaces::posts::persona_use;
use crate::spaces::{membership, space};
use crate::speakers::selection::SpeakerChoice;

/// A burst of messages delays its reply by at most this many debounce times, or by
/// [`MIN_BURST_LIMIT_MS`] if that is longer.
const MAX_BURST_DEBOUNCES: i64 = 10;
const MIN_BURST_LIMIT_MS: i64 = 10_000;

/// Decides what `command` changes in `state`.
///
/// # Errors
/// Returns the reason why the command is rejected; nothing changes then.
pub fn plan(
    state: &ScheduleState,
    command: &Command,
    random: GeneratedIds,
    now: Timestamp,
) -> Result<Plan, CommandError> {
    let archived = state.space.status == space::SpaceStatus::Archived;
    if archived && command.starts_new_work() {
        return Err(CommandError::SpaceArchived);
    }
    let mut plan_builder = PlanBuilder::new(state, random, now);
    let builder = &mut plan_builder;
    match command {
        Command::MessagePosted(post) => post_message(builder, post)?,
        Command::ForceTalk(turn) => force_talk(builder, turn)?,
        Command::Claim { run } => completion::claim(builder, *run),
        Command::SpeakerChosen { run, lease, choice } => {
            speaker_chosen::plan(builder, (*run, *lease), choice)?;
        }
        Command::RunEnded { run, lease, end } => completion::run_ended(builder, *run, *lease, end)?,
        Command::LeaseExpired {
            run,
            lease,
            silent_for_ms,
        } => {
            completion::lease_expired(builder, *run, *lease, *silent_for_ms)?;
        }
        Command::InsertGreetings(greetings) => greetings::insert(builder, greetings),
        Command::RunReleased { run, lease, usage } => {
            completion::run_released(builder, (*run, *lease), *usage)?;
        }
        Command::RoundStalled => completion::round_stalled(builder)?,
        Command::Stop { keep_partial } => controls::stop(builder, *keep_partial),
        Command::Pause => controls::pause(builder)?,
        Command::Resume => controls::resume(builder)?,
        Command::Skip { viewer, right } => controls::skip(builder, *viewer, *right)?,
        Command::TurnTimedOut { round } => human_turns::time_out(builder, *round)?,
        Command::Retry { may_edit, viewer } => controls::retry(builder, *may_edit, *viewer)?,
        Command::CancelRun { run } => controls::cancel(builder, *run)?,
        Command::SetVisibility {
            message,
            visibility,
        } => {
            controls::set_visibility(builder, *message, *visibility)?;
        }
        Command::SetRemembered { message, remember } => {
            controls::set_remembered(builder, *message, *remember)?;
        }
        Command::SetOutOfCharacter { message, is_ooc } => {
            out_of_character::set_mark(builder, *message, *is_ooc)?;
        }
        Command::EditMessage(edit) => controls::message_edited(builder, edit)?,
        Command::SelectSwipe {
            message,
            position,
            expected_version,
            by,
        } => {
            regenerate::require_version(builder, *expected_version)?;
            regenerate::select_swipe(builder, *message, *position, *by)?;
        }
        Command::Regenerate(request) => regenerate::regenerate(builder, request)?,
        Command::RegenerateInPlace(request) => regenerate::regenerate_in_place(builder, request)?,
        Command::Continue(request) => continue_message::plan(builder, request)?,
        Command::ReplyToTail => regenerate_last_turn::reply_to_tail(builder)?,
        Command::CopilotStarted { membership } => copilot::start(builder, *membership),
        Command::EditQueue(edit) => queue_edit::edit(builder, edit)?,
        Command::ApplyChanges => controls::apply_changes(builder),
        Command::SpaceClosed(reason) => builder.close(*reason),
    }
    Ok(plan_builder.into_plan())
}

fn post_message(builder: &mut PlanBuilder, post: &NewPost) -> Result<(), CommandError> {
    require_post_allowed(builder, post)?;
    let audience = post_audience::audience_of_post(builder, post)?;
    if post.kind != PostKind::Own {
        return narration::post(builder, post, audience);
    }
    if post.is_out_of_character() {
        out_of_character::post(builder, post, audience);
        return Ok(());
    }
    if post_audience::is_for_people(builder, audience.as_ref()) {
        post_audience::post_to_people(builder, post, audience);
        return Ok(());
    }
    builder.audience.clone_from(&audience);
    let policy = builder.state.space.during_generation_user_input_policy;
    let busy = builder.queued.is_some() || builder.running.is_some();
    if busy && policy == space::InputPolicy::Reject {
        return Err(CommandError::GenerationLocked);
    }
    builder.push(PlanChange::Append(NewMessage::of_post(post, audience)));
    let mut discarded_turn = false;
    if policy == space::InputPolicy::Restart
        && let Some(run) = builder.running.clone()
    {
        discarded_turn = builder.is_at_cursor(&run);
        builder.cancel_running(RunCancelReason::SupersededByMessage);
    }
    // It was planned for the text before this message, and must not end without an event.
    if builder
        .queued
        .as_ref()
        .is_some_and(|it| it.kind.adds_version())
    {
        builder.cancel_queued(RunCancelReason::SupersededByMessage);
    }
    auto_mode::resets_turns(builder);
    if human_turns::keep_round(builder, post.author, discarded_turn) {
        return Ok(());
    }
    let trigger_message = TriggerMessage {
        author: post.author,
        text: &post.content,
        mentions: &post.mentions,
    };
    let choices = speaker_choice::after_user_message(builder, &trigger_message, TurnTakers::All);
    if !choices.is_empty() {
        plan_from_user_message(builder, choices);
    } else if discarded_turn {
        // No character replies, so nothing replaces the queued run; only a round whose reply was
        // just discarded has nothing left to wait for.
        builder.end_round(round::RoundStatus::Superseded, "user_message");
    }
    Ok(())
}

fn require_post_allowed(builder: &PlanBuilder, post: &NewPost) -> Result<(), CommandError> {
    let author = builder.member(post.author).ok_or(CommandError::NotFound)?;
    if author.kind != membership::MembershipKind::Human
        || author.status != membership::MembershipStatus::Active
        || author.participation == membership::Participation::Observer
    {
        return Err(CommandError::Forbidden);
    }
    if author.can_speak(builder.state.conversation.id) {
        return Err(CommandError::CopilotActive);
    }
    if let Some(persona) = &post.persona
        && persona_use::is_name_taken(&builder.state.members, post.author, &persona.name)
    {
        return Err(CommandError::NameTaken);
    }
    let known = |id: &MembershipId| {
        builder
            .member(*id)
            .is_some_and(|it| it.status == membership::MembershipStatus::Active)
    };
    match post.mentions.iter().all(known) {
        true => Ok(()),
        false => Err(CommandError::UnknownMention),
    }
}

/// Ends the previous round; a new one replies, after the debounce. A queued forced run with the same
/// audience becomes its first slot and keeps its kind; with another one it ends, because its reply would
/// reach others than the person wanted who forced it.
fn plan_from_user_message(builder: &mut PlanBuilder, choices: Vec<NewSlot>) {
    let is_forced = |it: &run::Model| it.kind == run::RunKind::ForceTalk;
    let forced = builder.queued.clone().filter(is_forced);
    let (forced, other) = match forced {
        Some(run) if run.audience != builder.audience => (None, true),
        forced => (forced, false),
    };
    if other {
        builder.cancel_queued(RunCancelReason::SupersededByMessage);
    }
    let choices = match &forced {
        Some(run) => speaker_choice::with_forced_first(builder, run, choices),
        None => choices,
    };
    let Some(first) = choices.first().cloned() else {
        return;
    };
    builder.end_round(round::RoundStatus::Superseded, "user_message");
    builder.new_round(round::RoundKind::UserTurn, choices, MessageRef::Appended);
    if builder.is_turn_of_person() {
        builder.cancel_queued(RunCancelReason::SupersededByMessage);
        return builder.wait_for_person();
    }
    let of_burst = [run::RunKind::UserTurn, run::RunKind::ForceTalk];
    let burst_started_at = builder
        .queued
        .as_ref()
        .filter(|it| of_burst.contains(&it.kind))
        .and_then(|it| it.burst_started_at)
        .unwrap_or(builder.now);
    let debounce = builder.state.space.user_turn_debounce_ms;
    let bound = burst_started_at.plus_ms((debounce * MAX_BURST_DEBOUNCES).max(MIN_BURST_LIMIT_MS));
    let mut run = match &forced {
        Some(forced) => run::Model {
            attempt: forced.attempt,
            ..builder.new_run(first.speaker, forced.kind, forced.reason)
        },
        None => builder.new_run(
            first.speaker,
            run::RunKind::UserTurn,
            run::RunReason::UserMessage,
        ),
    };
    run.round_id = Some(builder.ids.round);
    run.slot_position = Some(0);
    let at = builder.now.plus_ms(debounce).min(bound).max(builder.now);
    run.run_after = (debounce > 0).then_some(at);
    run.burst_started_at = Some(burst_started_at);
    run.debug.chosen_because = Some(first.reason);
    builder.enqueue(EnqueueRun {
        run,
        trigger: Some(MessageRef::Appended),
        expected_tail: None,
    });
}

/// Queues a forced reply by the named speaker, or by the member that the reply order selects. It waits
/// for the running run.
fn force_talk(builder: &mut PlanBuilder, turn: &ForcedTurn) -> Result<(), CommandError> {
    builder.audience = post_audience::audience_of_reply(builder.state, turn)?;
    let (choice, reason) = match turn.speaker {
        Some(id) => {
            let can = builder
                .member(id)
                .is_some_and(|it| it.can_speak(builder.state.conversation.id));
            let choice = can.then(|| SpeakerChoice::forced(id, &turn.by).into());
            (choice, run::RunReason::ForceTalk)
        }
        None => (
            speaker_choice::for_force_talk(builder),
            run::RunReason::Generate,
        ),
    };
    let choice = choice.ok_or(CommandError::NoSpeaker)?;
    builder.end_round(round::RoundStatus::Canceled, "force_talk");
    let mut run = builder.new_run(choice.speaker, run::RunKind::ForceTalk, reason);
    run.debug.chosen_because = Some(choice.reason);
    let trigger = builder.seen_tail().map(|it| MessageRef::Message(it.id));
    builder.enqueue(EnqueueRun {
        run,
        trigger,
        expected_tail: None,
    });
    Ok(())
}

#[cfg(test)]
#[path = "planner_auto_mode_tests.rs"]
mod auto_mode_tests;
#[cfg(test)]
#[path = "planner_auto_rest_tests.rs"]
mod auto_rest_tests;
#[cfg(test)]
#[path = "planner_claim_tests.rs"]
mod claim_tests;
#[cfg(test)]
#[path = "planner_continue_tests.rs"]
mod continue_tests;
#[cfg(test)]
#[path = "planner_control_tests.rs"]
mod control_tests;
#[cfg(test)]
#[path = "planner_copilot_tests.rs"]
mod copilot_tests;
#[cfg(test)]
#[path = "planner_director_control_tests.rs"]
mod director_control_tests;
#[cfg(test)]
#[path = "planner_director_tests.rs"]
mod director_tests;
#[cfg(test)]
#[path = "planner_director_turn_tests.rs"]
mod director_turn_tests;
#[cfg(test)]
#[path = "planner_endings_tests.rs"]
mod endings_tests;
#[cfg(test)]
#[path = "planner_fixture.rs"]
mod fixture;
#[cfg(test)]
#[path = "planner_fixture_director.rs"]
mod fixture_director;
#[cfg(test)]
#[path = "planner_fixture_rows.rs"]
mod fixture_rows;
#[cfg(test)]
#[path = "planner_fixture_swipes.rs"]
mod fixture_swipes;
#[cfg(test)]
#[path = "planner_fixture_writer.rs"]
mod fixture_writer;
#[cfg(test)]
#[path = "planner_force_tests.rs"]
mod force_tests;
#[cfg(test)]
#[path = "planner_human_turn_end_tests.rs"]
mod human_turn_end_tests;
#[cfg(test)]
#[path = "planner_human_turn_tests.rs"]
mod human_turn_tests;
#[cfg(test)]
#[path = "planner_in_place_tests.rs"]
mod in_place_tests;
#[cfg(test)]
#[path = "planner_narration_tests.rs"]
mod narration_tests;
#[cfg(test)]
#[path = "planner_property_actions.rs"]
mod property_actions;
#[cfg(test)]
#[path = "planner_property_invariants.rs"]
mod property_invariants;
#[cfg(test)]
#[path = "planner_property_tests.rs"]
mod property_tests;
#[cfg(test)]
#[path = "planner_queue_edit_tests.rs"]
mod queue_edit_tests;
#[cfg(test)]
#[path = "planner_regenerate_tests.rs"]
mod regenerate_tests;
#[cfg(test)]
#[path = "planner_rounds_tests.rs"]
mod rounds_tests;
#[cfg(test)]
#[path = "planner_rules_tests.rs"]
mod rules_tests;
#[cfg(test)]
#[path = "planner_supersede_tests.rs"]
mod supersede_tests;
#[cfg(test)]
#[path = "planner_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "planner_turn_tests.rs"]
mod turn_tests;
#[cfg(test)]
#[path = "planner_whisper_tests.rs"]
mod whisper_tests;
