//! The one match over the reply orders.
//!
//! `select` is `replies_per_turn = one`: a trigger wakes at most one speaker. `activate` is the
//! ordered list that `activated` wakes: the same candidates, the same mentions and the same dice.

use crate::ids::MembershipId;
use crate::spaces::space::ReplyOrder;
use crate::speakers::candidates::Choice;
use crate::speakers::candidates::Scene;
use crate::speakers::candidates::eligible;
use crate::speakers::list;
use crate::speakers::manual;
use crate::speakers::natural;
use crate::speakers::pooled;
use crate::speakers::seeded_random::SeededRandom;

/// What asks for a speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A message written by, or for, a human.
    Human,
    /// Auto mode: an AI has spoken, another may follow.
    Auto,
    /// A button that does not say who.
    Generate,
}

/// Who speaks next, if anybody.
///
/// A human message bars nobody. Auto mode never chooses the author of the newest message, unless
/// the space allows it, and rests if that leaves nobody. Generate always finds somebody as long as
/// there is a candidate, and takes the last speaker only when nobody else can.
pub fn select(
    order: ReplyOrder,
    trigger: Trigger,
    scene: &Scene,
    dice: &mut SeededRandom,
) -> Option<Choice> {
    let eligible = eligible(&scene.candidates, barred(trigger, scene));
    match order {
        ReplyOrder::Manual => manual::choose(trigger, &eligible, dice),
        ReplyOrder::Natural => natural::choose(scene, &eligible),
        ReplyOrder::List => list::choose(scene, &eligible),
        ReplyOrder::Pooled => pooled::choose(trigger, scene, &eligible, dice),
    }
}

/// Who speaks one after the other, for a space where a trigger may wake several. A button without a
/// speaker always wakes one: that is [`select`].
pub fn activate(
    order: ReplyOrder,
    trigger: Trigger,
    scene: &Scene,
    dice: &mut SeededRandom,
) -> Vec<Choice> {
    let eligible = eligible(&scene.candidates, barred(trigger, scene));
    match order {
        ReplyOrder::Manual => Vec::new(),
        ReplyOrder::Natural => natural::activate(scene, &eligible, dice),
        ReplyOrder::List => list::activate(&eligible),
        ReplyOrder::Pooled => pooled::activate(scene, &eligible, dice)
            .into_iter()
            .collect(),
    }
}

/// The one seat, if any, that this trigger must not wake.
fn barred(trigger: Trigger, scene: &Scene) -> Option<MembershipId> {
    match trigger {
        Trigger::Human => None,
        Trigger::Auto if scene.allow_self_responses => None,
        Trigger::Auto => scene.newest_author,
        Trigger::Generate => {
            let others = eligible(&scene.candidates, scene.last_speaker);
            scene.last_speaker.filter(|_| !others.is_empty())
        }
    }
}

#[cfg(test)]
#[path = "selector_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "activation_tests.rs"]
mod activation_tests;
