//! Groups alone.

use super::Candidate;
use super::Rules;
use super::losers;
use crate::lore::book::Entry;
use crate::lore::entry;
use serde_json::Value;
use serde_json::json;
use std::collections::HashSet;

fn entries(extensions: &[Value]) -> Vec<Entry> {
    let one = |it: &Value| entry::read(&json!({"extensions": it}), "0".into(), None);
    extensions.iter().map(one).collect()
}

fn lost(entries: &[Entry], sticky: &[usize], settled: &[&str]) -> Vec<usize> {
    let candidates: Vec<Candidate> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| Candidate {
            index,
            entry,
            is_sticky: sticky.contains(&index),
        })
        .collect();
    let rules = Rules {
        settled: &settled.iter().copied().collect::<HashSet<_>>(),
        score: &|index| index,
        scoring: false,
        seed: 1,
    };
    let mut lost: Vec<usize> = losers(&candidates, &rules).into_keys().collect();
    lost.sort_unstable();
    lost
}

#[test]
fn who_is_sticky_stays_and_nobody_beside_them() {
    let group = entries(&[
        json!({"group": "g"}),
        json!({"group": "g", "group_override": true}),
        json!({"group": "g"}),
    ]);

    assert_eq!(lost(&group, &[0, 2], &[]), [1]);
    assert_eq!(lost(&group, &[0], &["g"]), [1, 2]);
}

#[test]
fn a_group_that_is_settled_takes_nobody() {
    let group = entries(&[json!({"group": "g"}), json!({"group": "h"}), json!({})]);

    assert_eq!(lost(&group, &[], &["g"]), [0]);
}

#[test]
fn the_score_counts_for_those_who_say_so() {
    let group = entries(&[
        json!({"group": "g", "use_group_scoring": true, "group_override": true}),
        json!({"group": "g", "use_group_scoring": true}),
        json!({"group": "g", "group_override": true}),
    ]);

    // The first two are below the best score of all; the third wins without one.
    assert_eq!(lost(&group, &[], &[]), [0, 1]);
}
