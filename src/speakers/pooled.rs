//! `pooled`: each once for every human message, in an order nobody knows.
//!
//! The pool is read from the messages of the epoch; nothing is stored.

use crate::speakers::candidates::Candidate;
use crate::speakers::candidates::Choice;
use crate::speakers::candidates::Scene;
use crate::speakers::dice::Dice;
use crate::speakers::selector::Trigger;

/// One of those who have not spoken in this epoch. When all have, only a button draws again.
pub fn choose(
    trigger: Trigger,
    scene: &Scene,
    eligible: &[&Candidate],
    dice: &mut Dice,
) -> Option<Choice> {
    let pool: Vec<&Candidate> = eligible
        .iter()
        .copied()
        .filter(|it| !scene.spoken_in_epoch.contains(&it.id))
        .collect();
    if let Some(drawn) = dice.one_of(&pool) {
        return Some(Choice::new(
            drawn.id,
            "drawn from those who have not spoken yet",
        ));
    }
    match trigger {
        Trigger::Human | Trigger::Auto => None,
        Trigger::Generate => {
            let drawn = dice.one_of(eligible)?;
            Some(Choice::new(drawn.id, "drawn at random"))
        }
    }
}
