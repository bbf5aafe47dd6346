//! `list`: one after the other, strictly by position.

use crate::speakers::candidates::Candidate;
use crate::speakers::candidates::Choice;
use crate::speakers::candidates::Scene;
use crate::speakers::candidates::next_in_circle;

/// Everybody, by position.
pub fn activate(eligible: &[&Candidate]) -> Vec<Choice> {
    let turns = eligible.iter();
    turns
        .map(|it| Choice::new(it.id, "next by position"))
        .collect()
}

/// The next after the last speaker, wrapping.
pub fn choose(scene: &Scene, eligible: &[&Candidate]) -> Option<Choice> {
    let next = next_in_circle(scene, eligible)?;
    Some(Choice::new(next.id, "next by position"))
}
