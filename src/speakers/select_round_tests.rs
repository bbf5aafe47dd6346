//! Tests of `select_round` (`replies_per_turn = activated`): fixed results, and probabilities of
//! random ones.

use std::collections::{HashMap, HashSet};

use super::{
    MembershipId, ReplyOrder, SeededRandom, SelectionInput, SelectionTrigger, select_round,
};
use crate::speakers::selection::Candidate;

const N: usize = 40_000;

/// Returns Ann 1, Bob 2 and Cid 3, in this roster order, with the given talkativeness.
fn input(talkativeness: [f64; 3]) -> SelectionInput {
    let members = (1..).zip(["Ann", "Bob", "Cid"]).zip(talkativeness);
    let candidates = members.map(|((id, name), talkativeness)| Candidate {
        id: MembershipId(id),
        is_person: false,
        position: id * 10,
        names: vec![name.into()],
        talkativeness,
        is_schedulable: true,
    });
    SelectionInput {
        candidates: candidates.collect(),
        newest_author: Some(MembershipId(100)),
        newest_text: "Well?".into(),
        ..SelectionInput::default()
    }
}

fn input_with_text(text: &str, talkativeness: [f64; 3]) -> SelectionInput {
    SelectionInput {
        newest_text: text.into(),
        ..input(talkativeness)
    }
}

fn speakers(order: ReplyOrder, trigger: SelectionTrigger, selection: &SelectionInput) -> Vec<i64> {
    let chosen = select_round(order, trigger, selection, &mut SeededRandom::from_seed(1));
    chosen.iter().map(|it| it.id.0).collect()
}

/// Returns the results of `N` draws from one seeded generator.
fn draws(order: ReplyOrder, selection: &SelectionInput) -> Vec<Vec<i64>> {
    let mut random = SeededRandom::from_seed(2026);
    let draw = |_| {
        let chosen = select_round(order, SelectionTrigger::Human, selection, &mut random);
        chosen.iter().map(|it| it.id.0).collect()
    };
    (0..N).map(draw).collect()
}

/// Returns whether `n` hits in all draws are consistent with probability `p`: within five standard
/// deviations, which chance exceeds about once in two million tests.
fn is_plausible(n: usize, p: f64) -> bool {
    let (n, draws) = (n as f64, N as f64);
    (n - draws * p).abs() <= 5.0 * (draws * p * (1.0 - p)).sqrt()
}

fn count(lists: &[Vec<i64>], fits: impl Fn(&Vec<i64>) -> bool) -> usize {
    lists.iter().filter(|it| fits(it)).count()
}

#[test]
fn manual_order_selects_no_speaker() {
    for trigger in [SelectionTrigger::Human, SelectionTrigger::Auto] {
        let woken = speakers(
            ReplyOrder::Manual,
            trigger,
            &input_with_text("Bob?", [1.0; 3]),
        );

        assert!(woken.is_empty());
    }
}

#[test]
fn list_order_selects_every_candidate_by_position() {
    let mut selection = input([0.0; 3]);
    selection.candidates.reverse();
    selection.last_speaker = Some(MembershipId(2));

    assert_eq!(
        speakers(ReplyOrder::List, SelectionTrigger::Human, &selection),
        [1, 2, 3]
    );
    selection.candidates[1].is_schedulable = false;
    assert_eq!(
        speakers(ReplyOrder::List, SelectionTrigger::Human, &selection),
        [1, 3]
    );
}

#[test]
fn natural_order_selects_mentioned_candidates_in_text_order() {
    let selection = input_with_text("Cid, ask Ann, and Cid again.", [0.0; 3]);

    let chosen = select_round(
        ReplyOrder::Natural,
        SelectionTrigger::Human,
        &selection,
        &mut SeededRandom::from_seed(1),
    );

    let reasons: Vec<(i64, &str)> = chosen
        .iter()
        .map(|it| (it.id.0, it.reason.as_str()))
        .collect();
    assert_eq!(
        reasons,
        [(3, r#"mentioned "Cid""#), (1, r#"mentioned "Ann""#)]
    );
}

#[test]
fn natural_order_selects_mentioned_candidates_first_and_each_once() {
    let lists = draws(
        ReplyOrder::Natural,
        &input_with_text("Bob!", [1.0, 1.0, 0.5]),
    );

    assert!(lists.iter().all(|it| it[0] == 2));
    for list in &lists {
        let once: HashSet<&i64> = list.iter().collect();
        assert_eq!(once.len(), list.len(), "{list:?}");
    }
    assert!(is_plausible(count(&lists, |it| it.contains(&3)), 0.5));
    assert!(is_plausible(count(&lists, |it| it.len() == 2), 0.5));
    assert!(
        lists.iter().all(|it| it.contains(&1)),
        "talkativeness 1 always joins"
    );
}

#[test]
fn natural_order_reports_the_roll() {
    let mut random = SeededRandom::from_seed(3);
    let everybody = input([1.0, 0.5, 0.25]);

    for _ in 0..200 {
        for choice in select_round(
            ReplyOrder::Natural,
            SelectionTrigger::Human,
            &everybody,
            &mut random,
        ) {
            let stated = ["1.00", "0.50", "0.25"][usize::try_from(choice.id.0 - 1).unwrap()];
            let because = choice.reason;
            if because.starts_with("drawn at random") {
                continue;
            }
            let (drawn, limit) = because
                .strip_prefix("drew ")
                .and_then(|it| it.split_once(" ≤ "))
                .unwrap_or_else(|| panic!("{because}"));
            assert_eq!(limit, stated);
            assert!(
                drawn.parse::<f64>().unwrap() <= limit.parse().unwrap(),
                "{because}"
            );
        }
    }
}

#[test]
fn three_candidates_of_even_talkativeness_join_by_their_exact_chances() {
    let lists = draws(ReplyOrder::Natural, &input([0.5; 3]));

    for (n, p) in [(1, 0.5), (2, 0.375), (3, 0.125)] {
        let n_hits = count(&lists, |it| it.len() == n);
        assert!(
            is_plausible(n_hits, p),
            "{n} speakers: {n_hits} of {N}, expected {p}"
        );
    }
}

#[test]
fn each_candidate_joins_as_often_as_its_talkativeness() {
    // The fallback never applies, because the first one always speaks.
    let lists = draws(ReplyOrder::Natural, &input([1.0, 0.3, 0.05]));

    for (id, p) in [(1, 1.0), (2, 0.3), (3, 0.05)] {
        let n_hits = count(&lists, |it| it.contains(&id));
        assert!(
            is_plausible(n_hits, p),
            "{id}: {n_hits} of {N}, expected {p}"
        );
    }
}

#[test]
fn joining_candidates_come_in_every_order_equally_often() {
    let lists = draws(ReplyOrder::Natural, &input([1.0; 3]));

    let mut orders: HashMap<&Vec<i64>, usize> = HashMap::new();
    for list in &lists {
        *orders.entry(list).or_default() += 1;
    }
    assert_eq!(orders.len(), 6);
    assert!(
        orders.values().all(|n| is_plausible(*n, 1.0 / 6.0)),
        "{orders:?}"
    );
}

#[test]
fn the_fallback_draws_talkative_candidates_equally_often() {
    // 0.9 × 0.8 of the draws select no one; each of the two then gets half of the fallbacks. Ann
    // has talkativeness 0 and is never selected.
    let lists = draws(ReplyOrder::Natural, &input([0.0, 0.1, 0.2]));

    let alone = |id| count(&lists, |it| *it == [id]);
    assert_eq!(
        count(&lists, |it| it.contains(&1)),
        0,
        "talkativeness 0 is never selected"
    );
    let silence = 0.9 * 0.8;
    assert!(is_plausible(alone(2), 0.1 * 0.8 + silence / 2.0));
    assert!(is_plausible(alone(3), 0.9 * 0.2 + silence / 2.0));
    assert!(is_plausible(count(&lists, |it| it.len() == 2), 0.1 * 0.2));
}

#[test]
fn without_talkative_candidates_the_fallback_draws_any() {
    let lists = draws(ReplyOrder::Natural, &input([0.0; 3]));

    assert!(lists.iter().all(|it| it.len() == 1));
    for id in 1..=3 {
        let n_hits = count(&lists, |it| *it == [id]);
        assert!(is_plausible(n_hits, 1.0 / 3.0), "{id}: {n_hits}");
    }
}

#[test]
fn pooled_order_selects_one_and_prefers_candidates_that_have_not_spoken() {
    let fresh = draws(ReplyOrder::Pooled, &input([0.0; 3]));
    let mut later = input([0.0; 3]);
    later.speakers_since_last_user_message = HashSet::from([MembershipId(2)]);
    let rest = draws(ReplyOrder::Pooled, &later);
    later
        .speakers_since_last_user_message
        .extend([MembershipId(1), MembershipId(3)]);
    let spent = draws(ReplyOrder::Pooled, &later);

    for id in 1..=3 {
        assert!(is_plausible(count(&fresh, |it| *it == [id]), 1.0 / 3.0));
        assert!(is_plausible(count(&spent, |it| *it == [id]), 1.0 / 3.0));
    }
    assert!(is_plausible(count(&rest, |it| *it == [1]), 0.5));
    assert!(is_plausible(count(&rest, |it| *it == [3]), 0.5));
    assert_eq!(count(&rest, |it| it.contains(&2)), 0);
}

#[test]
fn in_auto_mode_the_author_of_the_newest_message_is_no_candidate() {
    for order in [ReplyOrder::Natural, ReplyOrder::List, ReplyOrder::Pooled] {
        let mut selection = input_with_text("Ann, I am Ann.", [1.0; 3]);
        selection.newest_author = Some(MembershipId(1));

        let others = speakers(order, SelectionTrigger::Auto, &selection);
        selection.allow_self_responses = true;
        let all = select_round(
            order,
            SelectionTrigger::Auto,
            &selection,
            &mut SeededRandom::from_seed(1),
        );
        selection.allow_self_responses = false;
        selection.candidates.truncate(1);
        let alone = speakers(order, SelectionTrigger::Auto, &selection);

        assert!(
            !others.contains(&1) && !others.is_empty(),
            "{order:?}: {others:?}"
        );
        assert!(order == ReplyOrder::Pooled || all.len() == 3, "{order:?}");
        assert!(
            alone.is_empty(),
            "{order:?}: no speaker should be selected without candidates"
        );
    }
}

#[test]
fn the_same_seed_selects_the_same_list() {
    let selection = input([0.5; 3]);
    for seed in 0..100 {
        let list = || {
            select_round(
                ReplyOrder::Natural,
                SelectionTrigger::Human,
                &selection,
                &mut SeededRandom::from_seed(seed),
            )
        };

        assert_eq!(list(), list());
    }
}
