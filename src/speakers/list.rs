//! Implements the reply order `list`: selects the member after the last speaker, or all members, in
//! roster order.

use crate::speakers::selection::{Candidate, SelectionInput, SpeakerChoice, next_in_rotation};

/// Returns all eligible members in roster order.
pub fn select_round(eligible: &[&Candidate]) -> Vec<SpeakerChoice> {
    let turns = eligible.iter();
    turns
        .map(|it| SpeakerChoice::new(it.id, "next by position"))
        .collect()
}

/// Returns the member after the last speaker in roster order, wrapping around.
pub fn select_one(input: &SelectionInput, eligible: &[&Candidate]) -> Option<SpeakerChoice> {
    let next = next_in_rotation(input, eligible)?;
    Some(SpeakerChoice::new(next.id, "next by position"))
}
