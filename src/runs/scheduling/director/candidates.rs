//! Finds the characters among which the director chooses the speaker of a run: those of the order
//! `natural`.

use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::run;
use crate::runs::store::run::RunKind;
use crate::speakers::selection::{Candidate, SelectionInput, SelectionTrigger};
use crate::speakers::selector;

/// Returns the characters that may speak in a run, in roster order: those that can be scheduled and see
/// what the run answers.
pub fn list(state: &ScheduleState, run: &run::Model) -> Vec<Candidate> {
    let input = selection_input(state, run);
    let eligible = selector::eligible(trigger_of(run), &input);
    eligible.into_iter().cloned().collect()
}

/// Returns the input for a choice by the rules of the order `natural`. A message that mentions a
/// character has left nothing to the director, so its text does not matter.
pub fn selection_input(state: &ScheduleState, run: &run::Model) -> SelectionInput {
    SelectionInput {
        candidates: state.candidates_for(run.audience.as_ref()),
        last_speaker: state.last_speaker,
        newest_author: state.tail.as_ref().map(|it| it.space_membership_id),
        allow_self_responses: state.space.allow_self_responses,
        ..SelectionInput::default()
    }
}

/// Returns the trigger under which a run's speaker is chosen.
pub fn trigger_of(run: &run::Model) -> SelectionTrigger {
    match run.kind {
        RunKind::AutoMode => SelectionTrigger::Auto,
        RunKind::UserTurn => SelectionTrigger::Human,
        RunKind::ForceTalk | RunKind::Regenerate | RunKind::Continue => SelectionTrigger::Generate,
    }
}
