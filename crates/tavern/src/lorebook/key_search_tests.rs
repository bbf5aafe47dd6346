//! Tests of the key search: scopes, word boundaries, limits and the budget.

use super::{EntryScope, KeySearch, ScanZone, SearchKey, WordBoundary};
use crate::lorebook::pattern_key;
use crate::lorebook::scan_budget::{MAX_PATTERN_STEPS, MAX_SCAN_STEPS, SearchLimit};

fn scope(depth: usize) -> EntryScope {
    EntryScope {
        depth,
        texts: 0,
        recursion: false,
    }
}

fn add_pattern(search: &mut KeySearch, body: &str) -> SearchKey {
    search.add_pattern_key(body, pattern_key::compile(body, "").unwrap(), 0)
}

#[test]
fn a_key_counts_at_its_nearest_message() {
    let mut search = KeySearch::new(1);
    let key = search.add_plain_key("Wolf", false, WordBoundary::None);
    search.scan_text(ScanZone::Message(0), "nothing");
    search.scan_text(ScanZone::Message(1), "WOLVES and a wolf");

    assert_eq!(search.is_found(&key, scope(1)), Ok(false));
    assert_eq!(search.is_found(&key, scope(2)), Ok(true));
}

#[test]
fn a_text_beside_the_messages_counts_for_entries_that_request_it() {
    let mut search = KeySearch::new(1);
    let key = search.add_plain_key("wolf", false, WordBoundary::None);
    let pattern = add_pattern(&mut search, "wolf");
    search.scan_text(ScanZone::Text(4), "a wolf");

    let asking = EntryScope {
        texts: 4,
        ..scope(1)
    };
    assert_eq!(
        (
            search.is_found(&key, scope(1)),
            search.is_found(&key, asking)
        ),
        (Ok(false), Ok(true))
    );
    assert_eq!(search.is_found(&pattern, scope(1)), Ok(false));
    assert_eq!(search.is_found(&pattern, asking), Ok(true));
}

#[test]
fn overlapping_keys_are_all_found_with_their_own_word_boundaries() {
    let mut search = KeySearch::new(1);
    let inner = search.add_plain_key("dragon", false, WordBoundary::Word);
    let outer = search.add_plain_key("dragonfly", false, WordBoundary::Word);
    search.scan_text(ScanZone::Message(0), "a dragonfly");

    assert_eq!(search.is_found(&inner, scope(1)), Ok(false));
    assert_eq!(search.is_found(&outer, scope(1)), Ok(true));
}

#[test]
fn a_pattern_searches_each_message_separately_and_newest_first() {
    let mut search = KeySearch::new(1);
    let across = add_pattern(&mut search, "one.two");
    let marked = add_pattern(&mut search, "\u{1}two");
    search.scan_text(ScanZone::Message(0), "one");
    search.scan_text(ScanZone::Message(1), "two");

    assert_eq!(search.is_found(&across, scope(2)), Ok(false));
    assert_eq!(search.is_found(&marked, scope(2)), Ok(true));
    assert_eq!(search.is_found(&marked, scope(1)), Ok(false));
}

#[test]
fn text_past_the_limit_is_not_searched_and_is_cut_between_characters() {
    let mut search = KeySearch::new(1);
    let key = search.add_plain_key("wolf", false, WordBoundary::None);
    search.scan_text(ScanZone::Message(0), &"漢".repeat(super::MAX_TEXT / 3));
    search.scan_text(ScanZone::Message(1), "a wolf");

    assert_eq!(search.is_found(&key, scope(2)), Ok(false));
}

#[test]
fn a_pattern_without_its_required_literals_costs_no_step() {
    let mut search = KeySearch::new(1);
    let pattern = add_pattern(&mut search, r"(?<!old )\bwolf\d+(?=.*\bden\b)");
    let before = search.budget.pattern_steps(0);
    search.scan_text(ScanZone::Message(0), "a WOLF in its burrow");
    search.scan_text(ScanZone::Message(1), "the den of wolf12");
    search.scan_text(ScanZone::Message(2), "wolf12 in its den");

    assert_eq!(search.is_found(&pattern, scope(1)), Ok(false));
    assert_eq!(search.budget.pattern_steps(0), before);
    assert_eq!(search.is_found(&pattern, scope(2)), Ok(false));
    assert!(search.budget.pattern_steps(0) < before);
    assert_eq!(search.is_found(&pattern, scope(3)), Ok(true));
}

#[test]
fn a_pattern_is_aborted_after_its_steps_in_the_whole_scan() {
    let mut search = KeySearch::new(1);
    let wild = add_pattern(&mut search, r"(?=a)(a+)+\1$x");
    let text = "a".repeat(8 * 1024) + "x";
    search.scan_text(ScanZone::Message(0), &text);
    search.scan_text(ScanZone::Message(1), &text);

    for depth in [1, 2] {
        let found = search.is_found(&wild, scope(depth));
        assert_eq!(found, Err(SearchLimit::Pattern));
        let left = search.budget.pattern_steps(0);
        assert_eq!(left, MAX_SCAN_STEPS - MAX_PATTERN_STEPS);
    }
}

#[test]
fn a_lorebook_cannot_use_up_the_steps_of_another() {
    let mut search = KeySearch::new(2);
    let [mine, other] = [0, 1].map(|lorebook| {
        let pattern = pattern_key::compile("a+$", "").unwrap();
        search.add_pattern_key("", pattern, lorebook)
    });
    search.scan_text(ScanZone::Message(0), &"a".repeat(100));
    search
        .budget
        .spend_pattern_steps(0, MAX_SCAN_STEPS / 2 - 10);

    assert_eq!(search.is_found(&mine, scope(1)), Err(SearchLimit::Lorebook));
    assert_eq!(search.is_found(&other, scope(1)), Ok(true));
}

#[test]
fn a_plain_key_is_not_reported_as_missing_after_the_last_match() {
    let mut search = KeySearch::new(1);
    let near = search.add_plain_key("a", true, WordBoundary::None);
    let far = search.add_plain_key("wolf", true, WordBoundary::None);
    let pattern = add_pattern(&mut search, "w[o]lf");
    search.budget.matches_left.set(3);
    search.scan_text(ScanZone::Message(0), "aaaaaaaa");
    search.scan_text(ScanZone::Message(1), "wolf");

    assert_eq!(search.is_found(&near, scope(2)), Ok(true));
    assert_eq!(search.is_found(&far, scope(2)), Err(SearchLimit::Matches));
    assert_eq!(search.is_found(&pattern, scope(2)), Ok(true));
}
