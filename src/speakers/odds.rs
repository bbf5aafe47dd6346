//! Computes the probability with which each candidate is selected, without drawing: what
//! [`selector`](crate::speakers::selector) would return over all random numbers. No I/O.

use std::collections::HashSet;

use base::ids::MembershipId;

use crate::spaces::space::{RepliesPerTurn, ReplyOrder};
use crate::speakers::selection::{Candidate, SelectionInput, SelectionTrigger, next_in_rotation};
use crate::speakers::{mention, natural, selector};

/// How likely a candidate is to speak.
#[derive(Clone, Debug, PartialEq)]
pub struct SpeakerOdds {
    pub id: MembershipId,
    /// Of being selected at all: with several replies per turn the probabilities of all candidates may
    /// add up to more than 1.
    /// `None`: unknown.
    pub probability: Option<f64>,
    /// The reason as users read it.
    pub reason: String,
}

/// Returns the probability of each candidate that can be selected by this trigger, in roster order. A
/// user who requests a reply always gets one speaker.
pub fn compute(
    order: ReplyOrder,
    replies: RepliesPerTurn,
    trigger: SelectionTrigger,
    input: &SelectionInput,
) -> Vec<SpeakerOdds> {
    let eligible = selector::eligible(trigger, input);
    let one = replies == RepliesPerTurn::One || trigger == SelectionTrigger::Generate;
    match order {
        ReplyOrder::Manual => match trigger {
            SelectionTrigger::Generate => drawn_from(&eligible, &eligible, "drawn at random"),
            SelectionTrigger::Human | SelectionTrigger::Auto => Vec::new(),
        },
        ReplyOrder::List if one => in_rotation(input, &eligible, "next by position"),
        ReplyOrder::List => {
            let certain = eligible.iter();
            certain
                .map(|it| odds_of(it, 1.0, "next by position".to_owned()))
                .collect()
        }
        ReplyOrder::Natural => natural(input, &eligible, one),
        ReplyOrder::Pooled => {
            let is_refilled = !one || trigger == SelectionTrigger::Generate;
            pooled(input, &eligible, is_refilled)
        }
        ReplyOrder::Director => {
            let chosen = |it: &&Candidate| SpeakerOdds {
                id: it.id,
                probability: None,
                reason: "director chooses".to_owned(),
            };
            natural::characters(&eligible).iter().map(chosen).collect()
        }
    }
}

/// The mentioned ones speak; with one reply the first of them, else the next in rotation. With several
/// replies the others speak by their talkativeness, and one is drawn if no one does.
fn natural(input: &SelectionInput, eligible: &[&Candidate], one: bool) -> Vec<SpeakerOdds> {
    let found = mention::find(&input.newest_text, &input.mentions, &input.candidates);
    let is_eligible =
        |it: &mention::Mention| eligible.iter().any(|candidate| candidate.id == it.id);
    let mut mentioned: Vec<mention::Mention> = found.into_iter().filter(is_eligible).collect();
    if one {
        mentioned.truncate(1);
        if mentioned.is_empty() {
            return in_rotation(input, &natural::characters(eligible), "next in rotation");
        }
    }
    let characters = natural::characters(eligible);
    let talkativeness = |it: &Candidate| it.talkativeness.clamp(0.0, 1.0);
    let all_silent: f64 = match mentioned.is_empty() {
        true => characters
            .iter()
            .map(|it| 1.0 - talkativeness(it))
            .product(),
        false => 0.0,
    };
    let has_talkative = characters.iter().any(|it| it.talkativeness > 0.0);
    let is_drawn = |it: &Candidate| !has_talkative || it.talkativeness > 0.0;
    let n_drawn = characters.iter().filter(|it| is_drawn(it)).count();
    let odds = |it: &&Candidate| {
        if let Some(mention) = mentioned.iter().find(|mention| mention.id == it.id) {
            return odds_of(it, 1.0, format!("mentioned \"{}\"", mention.name));
        }
        if one {
            return odds_of(it, 0.0, "another is mentioned".to_owned());
        }
        let fallback = match is_drawn(it) {
            true => all_silent / n_drawn as f64,
            false => 0.0,
        };
        let reason = format!("talkativeness {:.2}", it.talkativeness);
        odds_of(it, talkativeness(it) + fallback, reason)
    };
    let is_shown = |it: &&&Candidate| !it.is_person || mentioned.iter().any(|m| m.id == it.id);
    eligible.iter().filter(is_shown).map(odds).collect()
}

/// One of those that have not spoken since the last user message; one of all if there are none and the
/// pool is refilled.
fn pooled(input: &SelectionInput, eligible: &[&Candidate], is_refilled: bool) -> Vec<SpeakerOdds> {
    let has_spoken = |it: &Candidate| input.speakers_since_last_user_message.contains(&it.id);
    let pool: Vec<&Candidate> = eligible
        .iter()
        .copied()
        .filter(|it| !has_spoken(it))
        .collect();
    match pool.is_empty() && is_refilled {
        true => drawn_from(eligible, eligible, "drawn at random"),
        false => drawn_from(eligible, &pool, "drawn from those who have not spoken yet"),
    }
}

fn in_rotation(input: &SelectionInput, eligible: &[&Candidate], reason: &str) -> Vec<SpeakerOdds> {
    let next = next_in_rotation(input, eligible).map(|it| it.id);
    let odds = |it: &&Candidate| match Some(it.id) == next {
        true => odds_of(it, 1.0, reason.to_owned()),
        false => odds_of(it, 0.0, "another is next".to_owned()),
    };
    eligible.iter().map(odds).collect()
}

/// Each of `pool` is equally likely; the other ones are not selected.
fn drawn_from(eligible: &[&Candidate], pool: &[&Candidate], reason: &str) -> Vec<SpeakerOdds> {
    let in_pool: HashSet<MembershipId> = pool.iter().map(|it| it.id).collect();
    let odds = |it: &&Candidate| match in_pool.contains(&it.id) {
        true => odds_of(it, 1.0 / pool.len() as f64, reason.to_owned()),
        false => odds_of(it, 0.0, "has spoken".to_owned()),
    };
    eligible.iter().map(odds).collect()
}

fn odds_of(candidate: &Candidate, probability: f64, reason: String) -> SpeakerOdds {
    SpeakerOdds {
        id: candidate.id,
        probability: Some(probability),
        reason,
    }
}

#[cfg(test)]
#[path = "odds_tests.rs"]
mod tests;
