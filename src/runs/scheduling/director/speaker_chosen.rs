//! Plans the choice of the director: a running run without a speaker gets one, and so does its slot.
//! Without a usable answer the rules of the order `natural` choose.
//!
//! **Invariant:** a run gets its speaker once, under its lease. The members are checked here, because
//! they may have changed while the model answered.

use base::ids::RunId;
use tavern::seeded_random::SeededRandom;

use crate::rounds::slot::Slot;
use crate::runs::scheduling::command::CommandError;
use crate::runs::scheduling::completion;
use crate::runs::scheduling::director::candidates;
use crate::runs::scheduling::director::choice::{
    DirectorAnswer, DirectorChoice, DirectorFailure, MAX_SPEAKERS,
};
use crate::runs::scheduling::plan::{NewSlot, PlanChange, RoundChange};
use crate::runs::scheduling::plan_builder::PlanBuilder;
use crate::runs::store::run::RunCancelReason;
use crate::runs::store::{queue, run};
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};
use crate::speakers::selection::SpeakerChoice;
use crate::speakers::selector;

/// Gives a run the first chosen speaker, and its round a slot for each further one. If no character can
/// speak any more, the run is canceled and the next slot follows; if a stop was requested, the run ends.
///
/// # Errors
/// Returns `AlreadyFinished` when the run no longer executes under `lease`, or has a speaker.
pub fn plan(
    builder: &mut PlanBuilder,
    (id, lease): (RunId, i64),
    choice: &DirectorChoice,
) -> Result<(), CommandError> {
    let mut run = completion::require_running(builder, id, lease)?;
    if run.speaker_space_membership_id.is_some() {
        return Err(CommandError::AlreadyFinished);
    }
    run.usage = run::RunUsage::sum(run.usage, choice.usage);
    if run.cancel_requested_at.is_some() {
        builder.running = None;
        run.canceled_because = Some(RunCancelReason::Stopped);
        let end = queue::RunEnd::Canceled;
        builder.push(PlanChange::Finish { run, end });
        return Ok(());
    }
    let mut chosen = choose(builder, &run, choice).into_iter();
    let Some(first) = chosen.next() else {
        builder.running = None;
        completion::cancel_unavailable(builder, run);
        return Ok(());
    };
    if builder.is_at_cursor(&run) {
        fill_slots(builder, &first, chosen);
    }
    run.speaker_space_membership_id = Some(first.id);
    run.debug.chosen_because = Some(first.reason);
    builder.running = Some(run.clone());
    builder.push(PlanChange::ChooseSpeaker(run));
    Ok(())
}

/// Returns the speakers in order; several only for a round in which several may reply.
fn choose(builder: &PlanBuilder, run: &run::Model, choice: &DirectorChoice) -> Vec<SpeakerChoice> {
    let is_several = builder.state.space.replies_per_turn == RepliesPerTurn::Activated
        && builder.is_at_cursor(run)
        && run.kind.is_scheduled();
    let failure = match &choice.answer {
        Ok(answer) => {
            let mut usable = usable_speakers(builder, run, answer);
            usable.truncate(if is_several { MAX_SPEAKERS } else { 1 });
            if !usable.is_empty() {
                return usable;
            }
            DirectorFailure::NoUsableName
        }
        Err(failure) => *failure,
    };
    let input = candidates::selection_input(builder.state, run);
    let trigger = candidates::trigger_of(run);
    let dice = &mut SeededRandom::from_seed(builder.ids.seed);
    let mut chosen = match is_several {
        true => selector::select_round(ReplyOrder::Natural, trigger, &input, dice),
        false => {
            let one = selector::select_one(ReplyOrder::Natural, trigger, &input, dice);
            one.into_iter().collect()
        }
    };
    for it in &mut chosen {
        it.reason = failure.shown_reason(&it.reason);
    }
    chosen
}

fn usable_speakers(
    builder: &PlanBuilder,
    run: &run::Model,
    answer: &DirectorAnswer,
) -> Vec<SpeakerChoice> {
    let candidates = candidates::list(builder.state, run);
    let is_candidate = |id: &_| candidates.iter().any(|it| it.id == *id);
    let reason = answer.shown_reason();
    let speakers = answer.speakers.iter().copied().filter(is_candidate);
    speakers
        .map(|it| SpeakerChoice::new(it, reason.clone()))
        .collect()
}

/// Gives the current slot its speaker, and inserts slots for the further ones after it.
fn fill_slots(
    builder: &mut PlanBuilder,
    first: &SpeakerChoice,
    further: impl Iterator<Item = SpeakerChoice>,
) {
    let Some(round) = builder.round.as_ref() else {
        return;
    };
    let from = round.cursor;
    let first = NewSlot {
        is_forced: round.current_slot().is_some_and(|it| it.forced),
        ..NewSlot::from(first.clone())
    };
    let later = round.slots.from(from + 1).cloned().map(Slot::into);
    let slots = std::iter::once(first)
        .chain(further.map(NewSlot::from))
        .chain(later)
        .collect();
    builder.change_round(RoundChange::ReplaceSlots { from, slots });
}
