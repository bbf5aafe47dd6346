//! Implements the reply order `manual`: selects a random character when a user requests a reply,
//! and no one otherwise.

use tavern::seeded_random::SeededRandom;

use crate::speakers::selection::{Candidate, SelectionTrigger, SpeakerChoice};

/// Returns a random member for [`SelectionTrigger::Generate`], otherwise `None`.
pub fn select_one(
    trigger: SelectionTrigger,
    eligible: &[&Candidate],
    dice: &mut SeededRandom,
) -> Option<SpeakerChoice> {
    match trigger {
        SelectionTrigger::Human | SelectionTrigger::Auto => None,
        SelectionTrigger::Generate => {
            let drawn = dice.choose(eligible)?;
            Some(SpeakerChoice::new(drawn.id, "drawn at random"))
        }
    }
}
