//! RunPlanner: decides what a command changes. Pure: the situation, the dice and the hour come in,
//! a plan or a refusal comes out; no I/O. All rules of the schedule are here, in `endings.rs`
//! (what became of a run) and in `control.rs` (what people press).
//!
//! **Invariant:** what a run *was* decides what follows it: its kind, round and slot, never the
//! present settings of its author.

use crate::clock::Timestamp;
use crate::conversations::message;
use crate::conversations::swipe;
use crate::ids::MembershipId;
use crate::prompt::builder::PromptEffects;
use crate::rounds::round;
use crate::runs::auto_mode;
use crate::runs::choosing;
use crate::runs::choosing::Said;
use crate::runs::command::Command;
use crate::runs::command::Greeting;
use crate::runs::command::Post;
use crate::runs::command::Refusal;
use crate::runs::control;
use crate::runs::copilot;
use crate::runs::draft::Draft;
use crate::runs::draft::Fresh;
use crate::runs::endings;
use crate::runs::plan::Change;
use crate::runs::plan::Enqueue;
use crate::runs::plan::NewMessage;
use crate::runs::plan::Plan;
use crate::runs::plan::Reference;
use crate::runs::queue_edit;
use crate::runs::regenerate;
use crate::runs::regenerate_turn;
use crate::runs::run;
use crate::runs::run::RunCancelReason;
use crate::runs::situation::Situation;
use crate::spaces::membership;
use crate::spaces::space;
use crate::speakers::selection::SpeakerChoice;
use std::sync::Arc;

/// A burst is gathered for at most this many times the debounce, and no less than
/// [`LEAST_BOUND_MS`].
const BURST_DEBOUNCES: i64 = 10;
const LEAST_BOUND_MS: i64 = 10_000;

/// Decides what `command` changes in `situation`.
///
/// # Errors
/// The reason why it changes nothing.
pub fn plan(
    situation: &Situation,
    command: &Command,
    fresh: Fresh,
    now: Timestamp,
) -> Result<Plan, Refusal> {
    let archived = situation.space.status == space::SpaceStatus::Archived;
    if archived && command.begins_something() {
        return Err(Refusal::SpaceArchived);
    }
    let mut draft = Draft::new(situation, fresh, now);
    let d = &mut draft;
    match command {
        Command::Posted(post) => posted(d, post)?,
        Command::ForceTalk { speaker, by } => force_talk(d, *speaker, by)?,
        Command::Due { run } => endings::due(d, *run),
        Command::Ended { run, lease, end } => endings::ended(d, *run, *lease, end)?,
        Command::Abandoned {
            run,
            lease,
            silent_for_ms,
        } => {
            endings::abandoned(d, *run, *lease, *silent_for_ms)?;
        }
        Command::Greet(greetings) => greet(d, greetings),
        Command::HandedBack { run, lease, usage } => {
            endings::handed_back(d, (*run, *lease), *usage)?;
        }
        Command::Adrift => endings::adrift(d)?,
        Command::Stop { keep_partial } => control::stop(d, *keep_partial),
        Command::Pause => control::pause(d)?,
        Command::Resume => control::resume(d)?,
        Command::Skip => control::skip(d)?,
        Command::Retry => control::retry(d)?,
        Command::Cancel { run } => control::cancel(d, *run)?,
        Command::VisibilityChanged {
            message,
            visibility,
        } => {
            control::visibility_changed(d, *message, *visibility)?;
        }
        Command::Edited(edit) => control::edited(d, edit)?,
        Command::SwipeSelected {
            message,
            position,
            expected_version,
        } => {
            regenerate::swipe_selected(d, *message, *position, *expected_version)?;
        }
        Command::Regenerate { message, by } => regenerate::regenerate(d, *message, by)?,
        Command::AnswerAgain => regenerate_turn::answer_again(d)?,
        Command::CopilotStarted { seat } => copilot::start(d, *seat),
        Command::EditQueue { round, slots, by } => queue_edit::edit(d, *round, slots, by)?,
        Command::ApplyChanges => control::apply_changes(d),
        Command::Closed(reason) => control::closed(d, *reason),
    }
    Ok(draft.into_plan())
}

fn posted(d: &mut Draft, post: &Post) -> Result<(), Refusal> {
    may_post(d, post)?;
    let policy = d.s.space.during_generation_user_input_policy;
    let busy = d.queued.is_some() || d.running.is_some();
    if busy && policy == space::InputPolicy::Reject {
        return Err(Refusal::GenerationLocked);
    }
    d.push(Change::Append(NewMessage {
        author: post.author,
        role: message::MessageRole::User,
        content: post.content.clone(),
        token_count: post.token_count,
        client_id: post.client_id.clone(),
        run: None,
        alternates: Vec::new(),
        metadata: serde_json::json!({}),
    }));
    let mut discarded_turn = false;
    if policy == space::InputPolicy::Restart
        && let Some(run) = d.running.clone()
    {
        discarded_turn = d.is_current_turn(&run);
        d.cancel_running(RunCancelReason::SupersededByMessage);
    }
    // It was planned for the text before this message, and nothing may discard it in silence.
    if d.queued
        .as_ref()
        .is_some_and(|it| it.kind == run::RunKind::Regenerate)
    {
        d.cancel_queued(RunCancelReason::SupersededByMessage);
    }
    auto_mode::begins_anew(d);
    let said = Said {
        author: post.author,
        text: &post.content,
        mentions: &post.mentions,
    };
    let choices = choosing::after_human(d, &said);
    if !choices.is_empty() {
        plan_from_user_message(d, choices);
    } else if discarded_turn {
        // Nobody answers, so nothing replaces what is queued; only a round whose reply was just
        // discarded has nothing left to wait for.
        d.end_round(round::RoundStatus::Superseded, "user_message");
    }
    Ok(())
}

/// Characters greet as long as nobody has spoken but in greeting, each once.
fn greet(d: &mut Draft, greetings: &[Greeting]) {
    if !d.s.is_untouched {
        return;
    }
    for it in greetings
        .iter()
        .filter(|it| !d.s.greeted.contains(&it.seat))
    {
        let Some((first, _)) = it.texts.split_first() else {
            continue;
        };
        d.push(Change::Append(NewMessage {
            author: it.seat,
            role: message::MessageRole::Assistant,
            content: first.content.clone(),
            token_count: first.token_count,
            client_id: None,
            run: None,
            alternates: if it.texts.len() > 1 {
                it.texts.clone()
            } else {
                Vec::new()
            },
            metadata: serde_json::json!({ swipe::GREETING_KEY: true }),
        }));
        if !it.macros.is_empty() {
            d.push(Change::Remember(Arc::new(PromptEffects {
                variables: it.macros.clone(),
                timed_effects: None,
            })));
        }
    }
}

fn may_post(d: &Draft, post: &Post) -> Result<(), Refusal> {
    let author = d.member(post.author).ok_or(Refusal::NotFound)?;
    if author.kind != membership::MembershipKind::Human
        || author.status != membership::MembershipStatus::Active
        || author.participation == membership::Participation::Observer
    {
        return Err(Refusal::Forbidden);
    }
    if author.can_speak(d.s.conversation.id) {
        return Err(Refusal::CopilotActive);
    }
    let known = |id: &MembershipId| {
        d.member(*id)
            .is_some_and(|it| it.status == membership::MembershipStatus::Active)
    };
    match post.mentions.iter().all(known) {
        true => Ok(()),
        false => Err(Refusal::UnknownMention),
    }
}

/// The previous round ends; a new one answers, after the debounce. A queued forced turn is its first
/// slot, and its run stays what it is.
fn plan_from_user_message(d: &mut Draft, choices: Vec<SpeakerChoice>) {
    let forced = d
        .queued
        .clone()
        .filter(|it| it.kind == run::RunKind::ForceTalk);
    let choices = match &forced {
        Some(run) => with_forced_first(run, choices),
        None => choices,
    };
    let Some(first) = choices.first().cloned() else {
        return;
    };
    d.end_round(round::RoundStatus::Superseded, "user_message");
    d.new_round(round::RoundKind::UserTurn, choices, Reference::Appended);
    let of_burst = [run::RunKind::UserTurn, run::RunKind::ForceTalk];
    let burst_started_at = d
        .queued
        .as_ref()
        .filter(|it| of_burst.contains(&it.kind))
        .and_then(|it| it.burst_started_at)
        .unwrap_or(d.now);
    let debounce = d.s.space.user_turn_debounce_ms;
    let bound = burst_started_at.plus_ms((debounce * BURST_DEBOUNCES).max(LEAST_BOUND_MS));
    let mut run = match &forced {
        Some(forced) => run::Model {
            attempt: forced.attempt,
            ..d.blank_run(first.id, forced.kind, forced.reason)
        },
        None => d.blank_run(
            first.id,
            run::RunKind::UserTurn,
            run::RunReason::UserMessage,
        ),
    };
    run.round_id = Some(d.fresh.round);
    run.slot_position = Some(0);
    let at = d.now.plus_ms(debounce).min(bound).max(d.now);
    run.run_after = (debounce > 0).then_some(at);
    run.burst_started_at = Some(burst_started_at);
    run.debug.chosen_because = Some(first.reason);
    d.enqueue(Enqueue {
        run,
        trigger: Some(Reference::Appended),
        expected_tail: None,
    });
}

/// The forced speaker, then the chosen ones without that speaker a second time.
fn with_forced_first(forced: &run::Model, chosen: Vec<SpeakerChoice>) -> Vec<SpeakerChoice> {
    let speaker = forced.speaker_space_membership_id;
    let because = forced.debug.chosen_because.clone().unwrap_or_default();
    let first = SpeakerChoice {
        is_forced: true,
        ..SpeakerChoice::new(speaker, because)
    };
    let others = chosen.into_iter().filter(|it| it.id != speaker);
    std::iter::once(first).chain(others).collect()
}

/// Somebody is made to speak: `speaker`, or whoever Generate wakes. A running run is waited for.
fn force_talk(d: &mut Draft, speaker: Option<MembershipId>, by: &str) -> Result<(), Refusal> {
    let (choice, reason) = match speaker {
        Some(id) => {
            let can = d
                .member(id)
                .is_some_and(|it| it.can_speak(d.s.conversation.id));
            let choice = can.then(|| SpeakerChoice::forced(id, by));
            (choice, run::RunReason::ForceTalk)
        }
        None => (choosing::for_generate(d), run::RunReason::Generate),
    };
    let choice = choice.ok_or(Refusal::NoSpeaker)?;
    d.end_round(round::RoundStatus::Canceled, "force_talk");
    let mut run = d.blank_run(choice.id, run::RunKind::ForceTalk, reason);
    run.debug.chosen_because = Some(choice.reason);
    let trigger = d.s.tail.as_ref().map(|it| Reference::Message(it.id));
    d.enqueue(Enqueue {
        run,
        trigger,
        expected_tail: None,
    });
    Ok(())
}

#[cfg(test)]
#[path = "planner_stage.rs"]
mod stage;
#[cfg(test)]
#[path = "planner_stage_writer.rs"]
mod stage_writer;

#[cfg(test)]
#[path = "planner_stage_versions.rs"]
mod stage_versions;

#[cfg(test)]
#[path = "planner_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "planner_force_tests.rs"]
mod force_tests;

#[cfg(test)]
#[path = "planner_supersede_tests.rs"]
mod supersede_tests;

#[cfg(test)]
#[path = "planner_claim_tests.rs"]
mod claim_tests;

#[cfg(test)]
#[path = "planner_endings_tests.rs"]
mod endings_tests;

#[cfg(test)]
#[path = "planner_control_tests.rs"]
mod control_tests;

#[cfg(test)]
#[path = "planner_rules_tests.rs"]
mod rules_tests;

#[cfg(test)]
#[path = "planner_rounds_tests.rs"]
mod rounds_tests;

#[cfg(test)]
#[path = "planner_regenerate_tests.rs"]
mod regenerate_tests;

#[cfg(test)]
#[path = "planner_copilot_tests.rs"]
mod copilot_tests;

#[cfg(test)]
#[path = "planner_turn_tests.rs"]
mod turn_tests;

#[cfg(test)]
#[path = "planner_auto_mode_tests.rs"]
mod auto_mode_tests;

#[cfg(test)]
#[path = "planner_auto_rest_tests.rs"]
mod auto_rest_tests;

#[cfg(test)]
#[path = "planner_queue_edit_tests.rs"]
mod queue_edit_tests;

#[cfg(test)]
#[path = "planner_property_acts.rs"]
mod property_acts;

#[cfg(test)]
#[path = "planner_property_laws.rs"]
mod property_laws;

#[cfg(test)]
#[path = "planner_property_tests.rs"]
mod property_tests;
