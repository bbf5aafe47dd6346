//! `manual`: nobody speaks until a human asks for it.

use crate::speakers::candidates::Candidate;
use crate::speakers::candidates::Choice;
use crate::speakers::seeded_random::SeededRandom;
use crate::speakers::selector::Trigger;

/// A random one for a button that names nobody; else nobody.
pub fn choose(
    trigger: Trigger,
    eligible: &[&Candidate],
    dice: &mut SeededRandom,
) -> Option<Choice> {
    match trigger {
        Trigger::Human | Trigger::Auto => None,
        Trigger::Generate => {
            let drawn = dice.choose(eligible)?;
            Some(Choice::new(drawn.id, "drawn at random"))
        }
    }
}
