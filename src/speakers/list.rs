//! `list`: one after the other, strictly by position.

use crate::speakers::selection::{Candidate, SelectionInput, SpeakerChoice, next_in_rotation};

/// Everybody, by position.
pub fn select_round(eligible: &[&Candidate]) -> Vec<SpeakerChoice> {
    let turns = eligible.iter();
    turns
        .map(|it| SpeakerChoice::new(it.id, "next by position"))
        .collect()
}

/// The next after the last speaker, wrapping.
pub fn select_one(input: &SelectionInput, eligible: &[&Candidate]) -> Option<SpeakerChoice> {
    let next = next_in_rotation(input, eligible)?;
    Some(SpeakerChoice::new(next.id, "next by position"))
}
