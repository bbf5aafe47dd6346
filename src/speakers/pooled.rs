//! `pooled`: each once for every human message, in an order nobody knows.
//!
//! The pool is read from the messages of the epoch; nothing is stored.

use crate::speakers::candidates::Candidate;
use crate::speakers::candidates::Choice;
use crate::speakers::candidates::Scene;
use crate::speakers::seeded_random::SeededRandom;
use crate::speakers::selector::Trigger;

/// One of those who have not spoken in this epoch. When all have, only a button draws again.
pub fn choose(
    trigger: Trigger,
    scene: &Scene,
    eligible: &[&Candidate],
    dice: &mut SeededRandom,
) -> Option<Choice> {
    match trigger {
        Trigger::Human | Trigger::Auto => from_the_pool(scene, eligible, dice),
        Trigger::Generate => activate(scene, eligible, dice),
    }
}

/// One of those who have not spoken in this epoch; when all have, anybody.
pub fn activate(scene: &Scene, eligible: &[&Candidate], dice: &mut SeededRandom) -> Option<Choice> {
    from_the_pool(scene, eligible, dice).or_else(|| {
        let drawn = dice.choose(eligible)?;
        Some(Choice::new(drawn.id, "drawn at random"))
    })
}

fn from_the_pool(
    scene: &Scene,
    eligible: &[&Candidate],
    dice: &mut SeededRandom,
) -> Option<Choice> {
    let eligible = eligible.iter().copied();
    let pool: Vec<&Candidate> = eligible
        .filter(|it| !scene.spoken_in_epoch.contains(&it.id))
        .collect();
    let drawn = dice.choose(&pool)?;
    Some(Choice::new(
        drawn.id,
        "drawn from those who have not spoken yet",
    ))
}
