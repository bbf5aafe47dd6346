//! Tests of the key search: scopes, word boundaries, limits and the budget.

use super::{EntryScope, KeySearch, ScanZone, WordBoundary};
use crate::lorebook::pattern_key::{PatternError, STEPS_CHARGED_ON_ABORT};
use crate::lorebook::scan_budget::{MAX_STEPS, STEPS_PER_MATCH};

fn scope(depth: usize) -> EntryScope {
    EntryScope {
        depth,
        texts: 0,
        recursion: false,
    }
}

#[test]
fn a_key_counts_at_its_nearest_message() {
    let mut search = KeySearch::new();
    let key = search.add_plain_key("Wolf", false, WordBoundary::None);
    search.scan_text(ScanZone::Message(0), "nothing");
    search.scan_text(ScanZone::Message(1), "WOLVES and a wolf");

    assert_eq!(search.is_found(&key, scope(1)), Ok(false));
    assert_eq!(search.is_found(&key, scope(2)), Ok(true));
}

#[test]
fn a_text_beside_the_messages_counts_for_entries_that_request_it() {
    let mut search = KeySearch::new();
    let key = search.add_plain_key("wolf", false, WordBoundary::None);
    let pattern = search.compile_pattern_key("/wolf/", "wolf", "").unwrap();
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
    let mut search = KeySearch::new();
    let inner = search.add_plain_key("dragon", false, WordBoundary::Word);
    let outer = search.add_plain_key("dragonfly", false, WordBoundary::Word);
    search.scan_text(ScanZone::Message(0), "a dragonfly");

    assert_eq!(search.is_found(&inner, scope(1)), Ok(false));
    assert_eq!(search.is_found(&outer, scope(1)), Ok(true));
}

#[test]
fn a_pattern_searches_each_message_separately_and_newest_first() {
    let mut search = KeySearch::new();
    let across = search.compile_pattern_key("", "one.two", "").unwrap();
    let marked = search.compile_pattern_key("", "\u{1}two", "").unwrap();
    search.scan_text(ScanZone::Message(0), "one");
    search.scan_text(ScanZone::Message(1), "two");

    assert_eq!(search.is_found(&across, scope(2)), Ok(false));
    assert_eq!(search.is_found(&marked, scope(2)), Ok(true));
    assert_eq!(search.is_found(&marked, scope(1)), Ok(false));
}

#[test]
fn text_past_the_limit_is_not_searched_and_is_cut_between_characters() {
    let mut search = KeySearch::new();
    let key = search.add_plain_key("wolf", false, WordBoundary::None);
    search.scan_text(ScanZone::Message(0), &"漢".repeat(super::MAX_TEXT / 3));
    search.scan_text(ScanZone::Message(1), "a wolf");

    assert_eq!(search.is_found(&key, scope(2)), Ok(false));
}

#[test]
fn pattern_work_is_counted_and_not_timed() {
    let mut search = KeySearch::new();
    let pattern = search.compile_pattern_key("", "wolf", "").unwrap();
    search.scan_text(ScanZone::Message(0), &"x".repeat(1023));

    let n_done = (0..).take_while(|_| search.is_found(&pattern, scope(1)).is_ok());

    assert_eq!(n_done.count(), (MAX_STEPS / 1024) as usize);
    assert_eq!(
        search.is_found(&pattern, scope(1)),
        Err(PatternError::TooSlow)
    );
}

#[test]
fn an_aborted_pattern_reduces_the_budget() {
    let mut search = KeySearch::new();
    let wild = search
        .compile_pattern_key("", r"(?=a)(a+)+\1$x", "")
        .unwrap();
    search.scan_text(ScanZone::Message(0), &"a".repeat(8 * 1024));

    assert_eq!(search.is_found(&wild, scope(1)), Err(PatternError::TooSlow));
    assert!(search.budget.steps_left.get() < MAX_STEPS - STEPS_CHARGED_ON_ABORT);
}

#[test]
fn plain_keys_are_found_until_the_steps_are_used_up() {
    let mut search = KeySearch::new();
    let near = search.add_plain_key("a", true, WordBoundary::None);
    let far = search.add_plain_key("wolf", true, WordBoundary::None);
    search.budget.steps_left.set(3 * STEPS_PER_MATCH);
    search.scan_text(ScanZone::Message(0), "aaaaaaaa");
    search.scan_text(ScanZone::Message(1), "wolf");

    assert_eq!(search.is_found(&near, scope(2)), Ok(true));
    assert_eq!(search.is_found(&far, scope(2)), Ok(false));
}
