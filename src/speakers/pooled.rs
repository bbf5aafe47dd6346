//! Implements the reply order `pooled`: selects a random member that has not spoken since the last
//! user message. If all have spoken, some triggers select any member.
//!
//! The pool is derived from the messages since the last user message; nothing is stored.

use tavern::seeded_random::SeededRandom;

use crate::speakers::selection::{Candidate, SelectionInput, SelectionTrigger, SpeakerChoice};

/// Returns a random member that has not spoken since the last user message. When all have spoken,
/// only [`SelectionTrigger::Generate`] still selects one.
pub fn select_one(
    trigger: SelectionTrigger,
    input: &SelectionInput,
    eligible: &[&Candidate],
    dice: &mut SeededRandom,
) -> Option<SpeakerChoice> {
    match trigger {
        SelectionTrigger::Human | SelectionTrigger::Auto => draw_from_pool(input, eligible, dice),
        SelectionTrigger::Generate => select_round(input, eligible, dice),
    }
}

/// Returns a random member that has not spoken since the last user message, or any member when all
/// have.
pub fn select_round(
    input: &SelectionInput,
    eligible: &[&Candidate],
    dice: &mut SeededRandom,
) -> Option<SpeakerChoice> {
    draw_from_pool(input, eligible, dice).or_else(|| {
        let drawn = dice.choose(eligible)?;
        Some(SpeakerChoice::new(drawn.id, "drawn at random"))
    })
}

fn draw_from_pool(
    input: &SelectionInput,
    eligible: &[&Candidate],
    dice: &mut SeededRandom,
) -> Option<SpeakerChoice> {
    let eligible = eligible.iter().copied();
    let pool: Vec<&Candidate> = eligible
        .filter(|it| !input.speakers_since_last_user_message.contains(&it.id))
        .collect();
    let drawn = dice.choose(&pool)?;
    Some(SpeakerChoice::new(
        drawn.id,
        "drawn from those who have not spoken yet",
    ))
}
