//! The one match over the reply orders.
//!
//! `select` is `replies_per_turn = one`: a trigger wakes at most one speaker. `activate` is the
//! ordered list that `activated` wakes: the same candidates, the same mentions and the same dice.

use crate::ids::MembershipId;
use crate::spaces::space::ReplyOrder;
use crate::speakers::seeded_random::SeededRandom;
use crate::speakers::selection::{SelectionInput, SpeakerChoice, eligible_candidates};
use crate::speakers::{list, manual, natural, pooled};

/// What asks for a speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionTrigger {
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
pub fn select_one(
    order: ReplyOrder,
    trigger: SelectionTrigger,
    input: &SelectionInput,
    dice: &mut SeededRandom,
) -> Option<SpeakerChoice> {
    let eligible = eligible_candidates(&input.candidates, excluded_speaker(trigger, input));
    match order {
        ReplyOrder::Manual => manual::select_one(trigger, &eligible, dice),
        ReplyOrder::Natural => natural::select_one(input, &eligible),
        ReplyOrder::List => list::select_one(input, &eligible),
        ReplyOrder::Pooled => pooled::select_one(trigger, input, &eligible, dice),
    }
}

/// Who speaks one after the other, for a space where a trigger may wake several. A button without a
/// speaker always wakes one: that is [`select`].
pub fn select_round(
    order: ReplyOrder,
    trigger: SelectionTrigger,
    input: &SelectionInput,
    dice: &mut SeededRandom,
) -> Vec<SpeakerChoice> {
    let eligible = eligible_candidates(&input.candidates, excluded_speaker(trigger, input));
    match order {
        ReplyOrder::Manual => Vec::new(),
        ReplyOrder::Natural => natural::select_round(input, &eligible, dice),
        ReplyOrder::List => list::select_round(&eligible),
        ReplyOrder::Pooled => pooled::select_round(input, &eligible, dice)
            .into_iter()
            .collect(),
    }
}

/// The one seat, if any, that this trigger must not wake.
fn excluded_speaker(trigger: SelectionTrigger, input: &SelectionInput) -> Option<MembershipId> {
    match trigger {
        SelectionTrigger::Human => None,
        SelectionTrigger::Auto if input.allow_self_responses => None,
        SelectionTrigger::Auto => input.newest_author,
        SelectionTrigger::Generate => {
            let others = eligible_candidates(&input.candidates, input.last_speaker);
            input.last_speaker.filter(|_| !others.is_empty())
        }
    }
}

#[cfg(test)]
#[path = "selector_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "activation_tests.rs"]
mod activation_tests;
