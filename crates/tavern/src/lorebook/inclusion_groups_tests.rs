//! Tests of inclusion groups without the engine.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{GroupCandidate, GroupRules, excluded_entries};
use crate::lorebook::engine_lorebook::LorebookEntry;
use crate::lorebook_files::entry;

fn entries(extensions: &[Value]) -> Vec<LorebookEntry> {
    let one = |it: &Value| entry::read(&json!({"extensions": it}), "0".into(), None);
    extensions.iter().map(one).collect()
}

fn excluded(entries: &[LorebookEntry], sticky: &[usize], settled: &[&str]) -> Vec<usize> {
    let candidates: Vec<GroupCandidate> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| GroupCandidate {
            index,
            entry,
            is_sticky: sticky.contains(&index),
        })
        .collect();
    let rules = GroupRules {
        decided: &settled.iter().copied().collect::<HashSet<_>>(),
        score: &|index| index,
        scoring: false,
        seed: 1,
    };
    let mut lost: Vec<usize> = excluded_entries(&candidates, &rules).into_keys().collect();
    lost.sort_unstable();
    lost
}

#[test]
fn a_sticky_entry_excludes_the_rest_of_its_group() {
    let group = entries(&[
        json!({"group": "g"}),
        json!({"group": "g", "group_override": true}),
        json!({"group": "g"}),
    ]);

    assert_eq!(excluded(&group, &[0, 2], &[]), [1]);
    assert_eq!(excluded(&group, &[0], &["g"]), [1, 2]);
}

#[test]
fn a_decided_group_activates_no_entry() {
    let group = entries(&[json!({"group": "g"}), json!({"group": "h"}), json!({})]);

    assert_eq!(excluded(&group, &[], &["g"]), [0]);
}

#[test]
fn the_score_counts_for_entries_that_enable_it() {
    let group = entries(&[
        json!({"group": "g", "use_group_scoring": true, "group_override": true}),
        json!({"group": "g", "use_group_scoring": true}),
        json!({"group": "g", "group_override": true}),
    ]);

    // The first two are below the highest score; scoring does not apply to the third.
    assert_eq!(excluded(&group, &[], &[]), [0, 1]);
}
