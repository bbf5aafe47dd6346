//! Tests which memories a search selects: order, budget, pinned memories, scope and end.

use std::sync::atomic::{AtomicUsize, Ordering};

use base::ids::MembershipId;

use super::fixtures::{found, index, memory, near, recalled};
use super::{RecallRules, search};
use crate::block::memory_block::MAX_MEMORIES;
use crate::entry::{MemoryEntry, RecallScope};
use crate::query::QueryText;

#[test]
fn importance_decides_between_equal_matches() {
    let important = MemoryEntry {
        importance: 0.9,
        ..memory(1, "Ann: A dog.")
    };
    let index = index([important, memory(2, "Bob: A dog.")]);

    assert_eq!(
        recalled(&found(&index, "dog", &RecallRules::default())),
        [1, 2]
    );
}

#[test]
fn pinned_memories_come_first_whatever_the_query_is() {
    let pinned = |id, last_recalled_at| MemoryEntry {
        is_pinned: true,
        last_recalled_at,
        ..memory(id, "Ann: We never speak of the war.")
    };
    let index = index([
        pinned(1, 5),
        pinned(2, 9),
        pinned(3, 7),
        memory(4, "Bob: A dog."),
    ]);

    let found = found(&index, "dog", &RecallRules::default());

    // The third pinned one is not related to the query.
    assert_eq!(recalled(&found), [2, 3, 4]);
}

#[test]
fn what_does_not_fit_into_the_budget_is_skipped_and_not_cut() {
    let long = MemoryEntry {
        tokens: 100,
        importance: 1.0,
        ..memory(1, "Ann: A dog.")
    };
    let index = index([long, memory(2, "Bob: A dog."), memory(3, "Vera: A dog.")]);
    let rules = |token_budget, top_k| RecallRules {
        token_budget,
        top_k,
        ..RecallRules::default()
    };

    let over_budget = found(&index, "dog", &rules(25, 5));
    let over_count = found(&index, "dog", &rules(512, 1));

    assert_eq!(
        (recalled(&over_budget), near(&over_budget)),
        (vec![3, 2], vec![1])
    );
    assert_eq!(
        (recalled(&over_count), near(&over_count)),
        (vec![1], vec![3, 2])
    );
    assert_eq!(
        recalled(&found(&index, "dog", &rules(0, 5))),
        Vec::<i64>::new()
    );
}

#[test]
fn memories_outside_the_scope_influence_no_score() {
    let foreign = (10..40).map(|id| MemoryEntry {
        owner: Some(MembershipId(9)),
        ..memory(id, "Ann: A dog.")
    });
    let own = [memory(1, "Ann: A dog and a cat.")];
    let alone = found(&index(own.clone()), "dog parrot", &RecallRules::default());
    let among_others = index(own.into_iter().chain(foreign));

    let found = found(&among_others, "dog parrot", &RecallRules::default());

    assert_eq!(found.len(), 1);
    assert_eq!(found[0].text_score, alone[0].text_score);
}

#[test]
fn a_search_stops_when_it_should() {
    let n = i64::try_from(2 * MAX_MEMORIES).unwrap();
    let index = index((0..n).map(|id| memory(id, "Ann: A dog.")));
    let n_checks = AtomicUsize::new(0);
    let query = QueryText {
        text: "dog",
        authors: "",
        vector: None,
        provider_vector: None,
    };

    let found = search(
        &index,
        &RecallScope::default(),
        &[query],
        &RecallRules::default(),
        &|| n_checks.fetch_add(1, Ordering::Relaxed) > 0,
    );

    assert!(found.is_empty());
    assert_eq!(n_checks.into_inner(), 2);
}

#[test]
fn a_query_without_terms_finds_nothing_but_pinned_memories() {
    let index = index([memory(1, "Ann: A dog.")]);

    assert!(found(&index, "what is it?", &RecallRules::default()).is_empty());
}
