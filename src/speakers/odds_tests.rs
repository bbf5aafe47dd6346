//! Compares the computed probabilities with the frequencies of the real selection over many seeds.

use std::collections::HashMap;

use base::ids::MembershipId;
use proptest::prelude::*;
use proptest::sample::select;
use tavern::seeded_random::SeededRandom;

use crate::spaces::space::{RepliesPerTurn, ReplyOrder};
use crate::speakers::selection::{Candidate, SelectionInput, SelectionTrigger};
use crate::speakers::{odds, selector};

const N_SEEDS: i64 = 3_000;
/// More than four standard deviations of a frequency of 3,000 draws.
const TOLERANCE: f64 = 0.04;

fn candidate(id: i64, talkativeness: f64, is_schedulable: bool) -> Candidate {
    let names = ["Ada", "Bob", "Cid", "Dot", "Eli"];
    Candidate {
        id: MembershipId(id),
        is_person: false,
        position: id,
        names: vec![names[(id - 1) as usize].to_owned()],
        talkativeness,
        is_schedulable,
    }
}

/// Counts how often each member is selected.
fn frequencies(
    order: ReplyOrder,
    replies: RepliesPerTurn,
    trigger: SelectionTrigger,
    input: &SelectionInput,
) -> HashMap<MembershipId, f64> {
    let mut counts: HashMap<MembershipId, f64> = HashMap::new();
    for seed in 0..N_SEEDS {
        let mut dice = SeededRandom::from_seed(seed);
        let one = replies == RepliesPerTurn::One || trigger == SelectionTrigger::Generate;
        let chosen = match one {
            true => selector::select_one(order, trigger, input, &mut dice)
                .into_iter()
                .collect(),
            false => selector::select_round(order, trigger, input, &mut dice),
        };
        for it in chosen {
            *counts.entry(it.id).or_default() += 1.0 / N_SEEDS as f64;
        }
    }
    counts
}

fn input_strategy() -> impl Strategy<Value = SelectionInput> {
    let talkativeness = select(vec![0.0, 0.0, 0.2, 0.5, 0.9, 1.0]);
    let members = prop::collection::vec((talkativeness, prop::bool::weighted(0.8)), 0..5);
    let member = || prop::option::of((1..6_i64).prop_map(MembershipId));
    let texts = select(vec!["", "Hello.", "Bob?", "Cid and Ada!"]);
    let spoken = prop::collection::hash_set((1..6_i64).prop_map(MembershipId), 0..4);
    (members, member(), member(), texts, spoken, any::<bool>()).prop_map(
        |(members, last_speaker, newest_author, text, spoken, allow_self_responses)| {
            let numbered = (1..).zip(members);
            SelectionInput {
                candidates: numbered
                    .map(|(id, (talk, is_schedulable))| candidate(id, talk, is_schedulable))
                    .collect(),
                last_speaker,
                newest_author,
                newest_text: text.to_owned(),
                mentions: Vec::new(),
                speakers_since_last_user_message: spoken,
                allow_self_responses,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn the_odds_equal_the_frequencies_of_the_selection(
        input in input_strategy(),
        order in select(vec![ReplyOrder::Manual, ReplyOrder::Natural, ReplyOrder::List, ReplyOrder::Pooled]),
        replies in select(vec![RepliesPerTurn::One, RepliesPerTurn::Activated]),
        trigger in select(vec![SelectionTrigger::Human, SelectionTrigger::Auto, SelectionTrigger::Generate]),
    ) {
        let computed = odds::compute(order, replies, trigger, &input);
        let mut measured = frequencies(order, replies, trigger, &input);

        for it in computed {
            let frequency = measured.remove(&it.id).unwrap_or_default();
            let is_certain = matches!(it.probability, Some(0.0 | 1.0));
            let difference = (it.probability.unwrap() - frequency).abs();
            prop_assert!(
                difference < if is_certain { 1e-9 } else { TOLERANCE },
                "{it:?}: measured {frequency}",
            );
        }
        prop_assert!(measured.is_empty(), "selected without odds: {measured:?}");
    }
}

#[test]
fn a_silent_group_still_answers_with_one_of_the_talkative() {
    let input = SelectionInput {
        candidates: vec![
            candidate(1, 0.5, true),
            candidate(2, 0.5, true),
            candidate(3, 0.0, true),
        ],
        ..SelectionInput::default()
    };

    let odds = odds::compute(
        ReplyOrder::Natural,
        RepliesPerTurn::Activated,
        SelectionTrigger::Human,
        &input,
    );

    let all: Vec<f64> = odds.iter().map(|it| it.probability.unwrap()).collect();
    assert_eq!(all, [0.625, 0.625, 0.0]);
}
