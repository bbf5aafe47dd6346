//! `manual`: nobody speaks until a human asks for it.

use crate::speakers::seeded_random::SeededRandom;
use crate::speakers::selection::{Candidate, SpeakerChoice};
use crate::speakers::selector::SelectionTrigger;

/// A random one for a button that names nobody; else nobody.
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
