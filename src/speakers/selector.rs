//! Selects the next speaker ([`select_one`]) or the speakers of a round ([`select_round`]):
//! excludes a speaker depending on the trigger, then applies the reply order of the space.
//!
//! `select_round` is for spaces with `replies_per_turn = activated`, in which a trigger may select
//! several speakers. Both use the same candidates and mentions.

use base::ids::MembershipId;
use tavern::seeded_random::SeededRandom;

use crate::spaces::space::ReplyOrder;
use crate::speakers::selection::{
    Candidate, SelectionInput, SelectionTrigger, SpeakerChoice, eligible_candidates,
};
use crate::speakers::{list, manual, natural, pooled};

/// Returns the next speaker, if any.
///
/// `Human` excludes no one. `Auto` never selects the author of the newest message, unless the space
/// allows self responses, and returns `None` if no other candidate is left. `Generate` excludes the
/// last speaker unless it is the only candidate. Without a director, `director` selects as `natural`.
pub fn select_one(
    order: ReplyOrder,
    trigger: SelectionTrigger,
    input: &SelectionInput,
    dice: &mut SeededRandom,
) -> Option<SpeakerChoice> {
    let eligible = eligible(trigger, input);
    match order {
        ReplyOrder::Manual => manual::select_one(trigger, &eligible, dice),
        ReplyOrder::Natural | ReplyOrder::Director => natural::select_one(input, &eligible),
        ReplyOrder::List => list::select_one(input, &eligible),
        ReplyOrder::Pooled => pooled::select_one(trigger, input, &eligible, dice),
    }
}

/// Returns the speakers of a round, in order, for a space where a trigger may select several. A
/// user request without a speaker always selects one: use [`select_one`] for it.
pub fn select_round(
    order: ReplyOrder,
    trigger: SelectionTrigger,
    input: &SelectionInput,
    dice: &mut SeededRandom,
) -> Vec<SpeakerChoice> {
    let eligible = eligible(trigger, input);
    match order {
        ReplyOrder::Manual => Vec::new(),
        ReplyOrder::Natural | ReplyOrder::Director => natural::select_round(input, &eligible, dice),
        ReplyOrder::List => list::select_round(&eligible),
        ReplyOrder::Pooled => pooled::select_round(input, &eligible, dice)
            .into_iter()
            .collect(),
    }
}

/// Returns the candidates that this trigger may select, in roster order.
pub fn eligible(trigger: SelectionTrigger, input: &SelectionInput) -> Vec<&Candidate> {
    eligible_candidates(&input.candidates, excluded_speaker(trigger, input))
}

/// Returns the membership, if any, that this trigger must not select.
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
#[path = "select_one_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "select_round_tests.rs"]
mod select_round_tests;
