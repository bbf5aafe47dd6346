//! Tests of scan passes: recursion, levels, minimum activations, groups, probability, budget.

use serde_json::{Value, json};

use super::engine_fixture::fixture;
use crate::lorebook::scan_result::SkipReason;

/// A chain: the message activates the first entry, and each entry the next.
fn chain(extensions: [Value; 3]) -> Value {
    let [first, second, third] = extensions;
    json!([
        {"keys": ["castle"], "content": "It has a tower.", "extensions": first},
        {"keys": ["tower"], "content": "It has a bell.", "extensions": second},
        {"keys": ["bell"], "content": "It rings.", "extensions": third},
    ])
}

fn n_activated(
    extensions: [Value; 3],
    change: impl FnOnce(&mut super::engine_fixture::EngineFixture),
) -> usize {
    let mut scan = fixture(&["the castle"], chain(extensions));
    scan.settings.recursive = true;
    change(&mut scan);
    scan.run().activated.len()
}

fn plain() -> [Value; 3] {
    [json!({}), json!({}), json!({})]
}

#[test]
fn entries_activate_each_other_where_recursion_is_allowed() {
    assert_eq!(n_activated(plain(), |_| {}), 3);
    assert_eq!(n_activated(plain(), |it| it.settings.recursive = false), 1);
    assert_eq!(n_activated(plain(), |it| it.settings.max_steps = 2), 2);
    assert_eq!(
        n_activated(plain(), |it| it.lorebooks[0].recursive = Some(false)),
        1
    );
    let of_book = n_activated(plain(), |it| {
        it.settings.recursive = false;
        it.lorebooks[0].recursive = Some(true);
    });
    assert_eq!(of_book, 3);
    let excluded = [json!({}), json!({"exclude_recursion": true}), json!({})];
    assert_eq!(n_activated(excluded, |_| {}), 1);
    let prevented = [json!({}), json!({"prevent_recursion": true}), json!({})];
    assert_eq!(n_activated(prevented, |_| {}), 2);
}

#[test]
fn an_endless_chain_of_activations_terminates() {
    let entries: Vec<Value> = (0..50)
        .map(|n| json!({"keys": [format!("k{n}.")], "content": format!("k{}.", n + 1)}))
        .collect();
    let mut scan = fixture(&["k0."], json!(entries));
    scan.settings.recursive = true;
    scan.settings.max_steps = 0;

    assert_eq!(scan.run().activated.len(), 10);
}

#[test]
fn an_entry_waits_for_its_level_of_recursion() {
    let entries = json!([
        {"keys": ["castle"], "content": "A tower."},
        {"keys": ["castle"], "content": "Waits.", "extensions": {"delay_until_recursion": true}},
        {"keys": ["tower"], "content": "Waits longer.", "extensions": {"delay_until_recursion": 2}},
    ]);
    let mut recursive = fixture(&["the castle"], entries.clone());
    recursive.settings.recursive = true;
    // Levels above the first have a pass even without recursion.
    let levels_alone = fixture(&["the castle"], entries);
    let first_alone = json!([{"keys": ["castle"], "extensions": {"delay_until_recursion": 1}}]);

    assert_eq!(recursive.run().activated.len(), 3);
    assert_eq!(levels_alone.run().activated.len(), 3);
    assert_eq!(
        fixture(&["the castle"], first_alone).reason(),
        "not: waits_for_recursion"
    );
}

#[test]
fn the_scan_depth_grows_until_enough_entries_are_active() {
    let entries = json!([
        {"keys": ["one"], "content": "1"}, {"keys": ["two"], "content": "2"},
        {"keys": ["three"], "content": "3"}, {"keys": ["four"], "content": "4"},
    ]);
    let n_active = |min: usize, max_depth: usize| {
        let mut scan = fixture(&["one", "two", "three", "four"], entries.clone());
        scan.settings.scan_depth = 1;
        scan.settings.min_activations = min;
        scan.settings.min_activations_depth = max_depth;
        scan.run().activated.len()
    };

    assert_eq!(
        [
            n_active(0, 0),
            n_active(2, 0),
            n_active(3, 0),
            n_active(9, 0)
        ],
        [1, 2, 3, 4]
    );
    assert_eq!(n_active(9, 2), 2);
}

#[test]
fn one_entry_of_a_group_is_activated() {
    let group = |extensions: [Value; 3]| {
        let entries = extensions.into_iter().enumerate().map(|(n, mut it)| {
            it["group"] = json!("weather");
            json!({"keys": ["sky"], "content": n.to_string(), "insertion_order": n, "extensions": it})
        });
        fixture(&["the sky"], json!(entries.collect::<Vec<_>>()))
    };
    let by_weight =
        |weights: [i64; 3]| group(weights.map(|it| json!({"group_weight": it}))).texts();

    assert_eq!(by_weight([0, 100, 0]), ["1"]);
    let overriding = group([
        json!({"group_override": true}),
        json!({"group_override": true}),
        json!({}),
    ]);
    assert_eq!(overriding.texts(), ["1"]);
    let outcome = overriding.run();
    assert!(
        outcome
            .skipped
            .iter()
            .all(|it| it.reason == SkipReason::Group("weather".into()))
    );
}

#[test]
fn entries_of_a_group_are_chosen_in_proportion_to_their_weights() {
    let entries = json!([
        {"keys": ["sky"], "content": "rare", "extensions": {"group": "g", "group_weight": 10}},
        {"keys": ["sky"], "content": "usual", "extensions": {"group": "g", "group_weight": 90}},
    ]);
    let mut scan = fixture(&["sky"], entries);

    let rare = (0..1_000).filter(|seed| {
        scan.seed = *seed;
        scan.texts() == ["rare"]
    });

    assert!((60..150).contains(&rare.count()));
}

#[test]
fn with_group_scoring_the_entry_with_most_matched_keys_wins() {
    let entries = json!([
        {"keys": ["sky"], "content": "one", "extensions": {"group": "g", "group_weight": 1_000_000}},
        {"keys": ["sky", "blue"], "content": "two", "extensions": {"group": "g"}},
        {"keys": ["sky", "red"], "secondary_keys": ["blue"], "content": "three", "extensions": {"group": "h"}},
    ]);
    let mut scan = fixture(&["blue sky"], entries);
    scan.settings.group_scoring = true;

    let mut texts = scan.texts();
    texts.sort();
    assert_eq!(texts, ["three", "two"]);
}

#[test]
fn an_entry_that_loses_in_two_groups_excludes_no_other() {
    let entries = json!([
        {"keys": ["sky"], "content": "a", "insertion_order": 9, "extensions": {"group": "g, h", "group_weight": 0}},
        {"keys": ["sky"], "content": "b", "extensions": {"group": "g", "group_override": true}},
        {"keys": ["sky"], "content": "c", "extensions": {"group": "h", "group_override": true}},
        {"keys": ["sky"], "content": "bystander"},
    ]);

    let mut texts = fixture(&["sky"], entries).texts();
    texts.sort();
    assert_eq!(texts, ["b", "bystander", "c"]);
}

#[test]
fn a_group_with_an_active_entry_activates_no_other() {
    let entries = json!([
        {"keys": ["sky"], "content": "a storm", "extensions": {"group": "g, h"}},
        {"keys": ["storm"], "content": "b", "extensions": {"group": "h"}},
    ]);
    let mut scan = fixture(&["sky"], entries);
    scan.settings.recursive = true;

    let outcome = scan.run();
    assert_eq!(outcome.activated.len(), 1);
    assert_eq!(outcome.skipped[0].reason, SkipReason::Group("h".into()));
}

#[test]
fn probability_is_rolled_once_per_scan_and_depends_on_the_seed() {
    let mut entries = chain(plain());
    entries[1]["extensions"] = json!({"probability": 50, "useProbability": true});
    let mut scan = fixture(&["castle tower"], entries);
    scan.settings.recursive = true;

    let n = (0..400)
        .filter(|seed| {
            scan.seed = *seed;
            let first = scan.run();
            assert_eq!(first, scan.run());
            first.activated.len() == 3
        })
        .count();

    // A roll in every pass would succeed in three of four scans.
    assert!((150..250).contains(&n), "{n}");
    let never = json!([{"constant": true, "extensions": {"probability": 0}}]);
    assert_eq!(
        super::engine_fixture::fixture(&[], never).reason(),
        "not: dice: 0"
    );
    let unused =
        json!([{"constant": true, "extensions": {"probability": 0, "useProbability": false}}]);
    assert_eq!(
        super::engine_fixture::fixture(&[], unused).reason(),
        "constant"
    );
}

#[test]
fn entries_past_the_budget_are_dropped_by_priority_and_reported() {
    let entries = json!([
        {"keys": ["sky"], "content": "low low", "comment": "low", "priority": 1, "insertion_order": 300},
        {"keys": ["sky"], "content": "high high", "comment": "high", "priority": 50},
        {"keys": ["sky"], "content": "free free", "comment": "free", "priority": 0, "extensions": {"ignore_budget": true}},
    ]);
    let mut scan = fixture(&["sky"], entries);
    scan.settings.budget = 4;

    let outcome = scan.run();
    let mut names: Vec<&str> = outcome
        .activated
        .iter()
        .map(|it| it.entry.name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["free", "high"]);
    assert_eq!(outcome.dropped.len(), 1);
    assert_eq!(outcome.skipped[0].reason, SkipReason::Budget);
}

#[test]
fn without_priorities_entries_are_kept_by_order_until_one_does_not_fit() {
    let entries = json!([
        {"keys": ["sky"], "content": "small", "insertion_order": 1},
        {"keys": ["sky"], "content": "much too long for it", "insertion_order": 2},
        {"keys": ["sky"], "content": "two words", "insertion_order": 3},
    ]);
    let mut scan = fixture(&["sky"], entries);
    scan.settings.budget = 5;

    assert_eq!(scan.texts(), ["two words"]);
}

#[test]
fn the_budget_of_a_lorebook_applies_only_to_its_entries() {
    let entries = json!([
        {"keys": ["sky"], "content": "one two three", "insertion_order": 3},
        {"keys": ["sky"], "content": "one", "insertion_order": 2},
    ]);
    let mut scan = fixture(&["sky"], entries);
    scan.lorebooks[0].token_budget = Some(2);

    assert_eq!(scan.texts(), ["one"]);
    assert_eq!(scan.run().dropped.len(), 1);
}
