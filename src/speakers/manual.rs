//! Reply order `manual`: characters speak only when a user triggers a reply.

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
