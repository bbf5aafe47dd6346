//! What is found where.

use super::Bounds;
use super::Search;
use super::View;
use super::Zone;
use crate::lore::effort::MAX_STEPS;
use crate::lore::effort::STEPS_OF_FOUND;
use crate::lore::pattern::STEPS_OF_GIVEN_UP;
use crate::lore::pattern::Trouble;

fn view(depth: usize) -> View {
    View {
        depth,
        texts: 0,
        recursion: false,
    }
}

#[test]
fn a_key_counts_as_near_as_it_stands() {
    let mut search = Search::new();
    let key = search.plain("Wolf", false, Bounds::None);
    search.read(Zone::Message(0), "nothing");
    search.read(Zone::Message(1), "WOLVES and a wolf");

    assert_eq!(search.finds(&key, view(1)), Ok(false));
    assert_eq!(search.finds(&key, view(2)), Ok(true));
}

#[test]
fn a_text_beside_the_messages_counts_for_those_who_ask() {
    let mut search = Search::new();
    let key = search.plain("wolf", false, Bounds::None);
    let pattern = search.pattern("/wolf/", "wolf", "").unwrap();
    search.read(Zone::Text(4), "a wolf");

    let asking = View {
        texts: 4,
        ..view(1)
    };
    assert_eq!(
        (search.finds(&key, view(1)), search.finds(&key, asking)),
        (Ok(false), Ok(true))
    );
    assert_eq!(search.finds(&pattern, view(1)), Ok(false));
    assert_eq!(search.finds(&pattern, asking), Ok(true));
}

#[test]
fn keys_inside_each_other_are_all_found_with_their_own_bounds() {
    let mut search = Search::new();
    let inner = search.plain("dragon", false, Bounds::Words);
    let outer = search.plain("dragonfly", false, Bounds::Words);
    search.read(Zone::Message(0), "a dragonfly");

    assert_eq!(search.finds(&inner, view(1)), Ok(false));
    assert_eq!(search.finds(&outer, view(1)), Ok(true));
}

#[test]
fn a_pattern_sees_messages_apart_and_newest_first() {
    let mut search = Search::new();
    let across = search.pattern("", "one.two", "").unwrap();
    let marked = search.pattern("", "\u{1}two", "").unwrap();
    search.read(Zone::Message(0), "one");
    search.read(Zone::Message(1), "two");

    assert_eq!(search.finds(&across, view(2)), Ok(false));
    assert_eq!(search.finds(&marked, view(2)), Ok(true));
    assert_eq!(search.finds(&marked, view(1)), Ok(false));
}

#[test]
fn what_is_past_the_limit_is_not_searched_and_cut_between_characters() {
    let mut search = Search::new();
    let key = search.plain("wolf", false, Bounds::None);
    search.read(Zone::Message(0), &"漢".repeat(super::MAX_TEXT / 3));
    search.read(Zone::Message(1), "a wolf");

    assert_eq!(search.finds(&key, view(2)), Ok(false));
}

#[test]
fn how_much_patterns_look_at_is_counted_and_not_timed() {
    let mut search = Search::new();
    let pattern = search.pattern("", "wolf", "").unwrap();
    search.read(Zone::Message(0), &"x".repeat(1023));

    let n_done = (0..).take_while(|_| search.finds(&pattern, view(1)).is_ok());

    assert_eq!(n_done.count(), (MAX_STEPS / 1024) as usize);
    assert_eq!(search.finds(&pattern, view(1)), Err(Trouble::TooSlow));
}

#[test]
fn a_pattern_that_was_given_up_leaves_less_for_others() {
    let mut search = Search::new();
    let wild = search.pattern("", r"(?=a)(a+)+\1$x", "").unwrap();
    search.read(Zone::Message(0), &"a".repeat(8 * 1024));

    assert_eq!(search.finds(&wild, view(1)), Err(Trouble::TooSlow));
    assert!(search.effort.left.get() < MAX_STEPS - STEPS_OF_GIVEN_UP);
}

#[test]
fn plain_keys_are_found_until_the_steps_are_used_up() {
    let mut search = Search::new();
    let near = search.plain("a", true, Bounds::None);
    let far = search.plain("wolf", true, Bounds::None);
    search.effort.left.set(3 * STEPS_OF_FOUND);
    search.read(Zone::Message(0), "aaaaaaaa");
    search.read(Zone::Message(1), "wolf");

    assert_eq!(search.finds(&near, view(2)), Ok(true));
    assert_eq!(search.finds(&far, view(2)), Ok(false));
}
