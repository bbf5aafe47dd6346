//! Tests of speaker selection: who speaks, for each reply order and trigger.

use std::collections::HashMap;

use super::ReplyOrder::{self, List, Manual, Natural, Pooled};
use super::SelectionTrigger::{self, Auto, Generate, Human};
use super::{MembershipId, SeededRandom, SelectionInput, SpeakerChoice, select_one};
use crate::speakers::selection::Candidate;

const EVERY_ORDER: [ReplyOrder; 4] = [Manual, Natural, List, Pooled];

/// Ann 1, Bob 2, Cid 3, with positions in this order, listed in another.
fn input() -> SelectionInput {
    let candidate = |id, name: &str| Candidate {
        id: MembershipId(id),
        is_person: false,
        position: id * 10,
        names: vec![name.into()],
        talkativeness: 0.5,
        is_schedulable: true,
    };
    SelectionInput {
        candidates: vec![
            candidate(3, "Cid"),
            candidate(1, "Ann"),
            candidate(2, "Bob"),
        ],
        ..SelectionInput::default()
    }
}

impl SelectionInput {
    /// The AI with this id spoke last, with this text.
    fn after_ai_message(mut self, id: i64, text: &str) -> Self {
        self.last_speaker = Some(MembershipId(id));
        self.newest_author = Some(MembershipId(id));
        self.newest_text = text.into();
        self.speakers_since_last_user_message
            .insert(MembershipId(id));
        self
    }

    /// A human spoke last, with this text: an epoch begins.
    fn after_user_message(mut self, text: &str) -> Self {
        self.newest_author = Some(MembershipId(100));
        self.newest_text = text.into();
        self.speakers_since_last_user_message.clear();
        self
    }

    fn muted(mut self, id: i64) -> Self {
        let mut them = self.candidates.iter_mut();
        them.find(|it| it.id.0 == id)
            .expect("the candidate exists")
            .is_schedulable = false;
        self
    }

    fn with_only(mut self, id: i64) -> Self {
        self.candidates.retain(|it| it.id.0 == id);
        self
    }

    fn with_self_responses(mut self) -> Self {
        self.allow_self_responses = true;
        self
    }
}

fn speaker(
    order: ReplyOrder,
    trigger: SelectionTrigger,
    selection: &SelectionInput,
) -> Option<i64> {
    select_one(order, trigger, selection, &mut SeededRandom::from_seed(1)).map(|it| it.id.0)
}

fn reason(order: ReplyOrder, trigger: SelectionTrigger, selection: &SelectionInput) -> String {
    select_one(order, trigger, selection, &mut SeededRandom::from_seed(1))
        .expect("a speaker is selected")
        .reason
}

/// Counts how often each was drawn in `n` draws from one seeded generator.
fn draws(
    order: ReplyOrder,
    trigger: SelectionTrigger,
    selection: &SelectionInput,
    n: usize,
) -> HashMap<i64, usize> {
    let mut random = SeededRandom::from_seed(2026);
    let mut drawn = HashMap::new();
    for _ in 0..n {
        let choice =
            select_one(order, trigger, selection, &mut random).expect("a speaker is selected");
        *drawn.entry(choice.id.0).or_default() += 1;
    }
    drawn
}

#[test]
fn manual_order_selects_no_speaker_after_a_user_message() {
    let selection = input().after_user_message("Bob?");

    assert_eq!(speaker(Manual, Human, &selection), None);
}

#[test]
fn manual_order_selects_no_speaker_in_auto_mode() {
    let selection = input().after_ai_message(1, "Bob?").with_self_responses();

    assert_eq!(speaker(Manual, Auto, &selection), None);
}

#[test]
fn manual_generate_draws_any_but_the_last_speaker() {
    let selection = input().after_ai_message(2, "Hi.");

    let drawn = draws(Manual, Generate, &selection, 20_000);

    assert_eq!(drawn.len(), 2);
    assert!((9_700..10_300).contains(&drawn[&1]), "{drawn:?}");
    assert!((9_700..10_300).contains(&drawn[&3]), "{drawn:?}");
    assert_eq!(reason(Manual, Generate, &selection), "drawn at random");
}

#[test]
fn natural_order_selects_the_first_mentioned_candidate() {
    let selection = input()
        .after_ai_message(1, "Hi.")
        .after_user_message("Cid or Bob?");

    assert_eq!(speaker(Natural, Human, &selection), Some(3));
    assert_eq!(reason(Natural, Human, &selection), "mentioned \"Cid\"");
}

#[test]
fn natural_order_selects_a_candidate_mentioned_by_id() {
    let mut selection = input()
        .after_ai_message(1, "Hi.")
        .after_user_message("Bob?");
    selection.mentions = vec![MembershipId(3)];

    assert_eq!(speaker(Natural, Human, &selection), Some(3));
}

#[test]
fn natural_order_without_a_mention_rotates_from_the_last_speaker() {
    let after = |id| {
        let selection = input()
            .after_ai_message(id, "Hi.")
            .after_user_message("Well?");
        speaker(Natural, Human, &selection)
    };

    assert_eq!([after(1), after(2), after(3)], [Some(2), Some(3), Some(1)]);
    let first = input().after_user_message("Hello.");
    assert_eq!(speaker(Natural, Human, &first), Some(1));
    assert_eq!(reason(Natural, Human, &first), "next in rotation");
}

#[test]
fn natural_order_uses_mentions_in_the_text_of_an_ai() {
    let selection = input().after_ai_message(1, "Ann agrees with Cid.");

    assert_eq!(speaker(Natural, Auto, &selection), Some(3));
    assert_eq!(speaker(Natural, Generate, &selection), Some(3));
}

#[test]
fn natural_order_skips_a_mentioned_muted_candidate() {
    let selection = input()
        .after_ai_message(1, "Hi.")
        .after_user_message("Cid?")
        .muted(3);

    assert_eq!(speaker(Natural, Human, &selection), Some(2));
}

#[test]
fn a_user_message_may_select_the_last_speaker_again() {
    let selection = input()
        .after_ai_message(2, "Hi.")
        .after_user_message("Bob, again!");

    assert_eq!(speaker(Natural, Human, &selection), Some(2));
}

#[test]
fn list_order_follows_positions_and_wraps_for_every_trigger() {
    for trigger in [Human, Auto, Generate] {
        let after = |id| speaker(List, trigger, &input().after_ai_message(id, "Cid!"));

        assert_eq!([after(1), after(2), after(3)], [Some(2), Some(3), Some(1)]);
        assert_eq!(speaker(List, trigger, &input()), Some(1));
    }
    assert_eq!(reason(List, Human, &input()), "next by position");
}

#[test]
fn equal_positions_are_ordered_by_id() {
    let mut selection = input().after_ai_message(1, "Hi.");
    for candidate in &mut selection.candidates {
        candidate.position = 0;
    }

    assert_eq!(speaker(List, Human, &selection), Some(2));
}

#[test]
fn the_rotation_continues_after_a_muted_speaker() {
    let selection = input()
        .after_ai_message(2, "Hi.")
        .after_user_message("Well?")
        .muted(2);

    assert_eq!(speaker(List, Human, &selection), Some(3));
}

#[test]
fn the_rotation_restarts_when_the_last_speaker_has_left() {
    let selection = input()
        .after_ai_message(77, "Bye.")
        .after_user_message("Well?");

    assert_eq!(speaker(List, Human, &selection), Some(1));
}

#[test]
fn pooled_draws_uniformly_after_a_human_message() {
    let selection = input()
        .after_ai_message(2, "Hi.")
        .after_user_message("Bob?");

    let drawn = draws(Pooled, Human, &selection, 20_000);

    assert_eq!(drawn.len(), 3);
    assert!(
        drawn.values().all(|it| (6_300..7_040).contains(it)),
        "{drawn:?}"
    );
}

#[test]
fn pooled_order_skips_candidates_that_have_spoken() {
    let selection = input()
        .after_ai_message(1, "Hi.")
        .after_ai_message(3, "Hi.");

    for trigger in [Auto, Generate] {
        assert_eq!(speaker(Pooled, trigger, &selection), Some(2));
        let because = reason(Pooled, trigger, &selection);
        assert_eq!(because, "drawn from those who have not spoken yet");
    }
}

#[test]
fn pooled_order_with_an_empty_pool_selects_no_speaker_in_auto_mode() {
    let selection = input()
        .after_ai_message(1, "a")
        .after_ai_message(2, "b")
        .after_ai_message(3, "c")
        .with_self_responses();

    assert_eq!(speaker(Pooled, Auto, &selection), None);
}

#[test]
fn pooled_with_an_empty_pool_draws_any_but_the_last_for_generate() {
    let selection = input()
        .after_ai_message(1, "a")
        .after_ai_message(2, "b")
        .after_ai_message(3, "c");

    let drawn = draws(Pooled, Generate, &selection, 20_000);

    assert_eq!(drawn.len(), 2);
    assert!((9_700..10_300).contains(&drawn[&1]), "{drawn:?}");
    assert_eq!(reason(Pooled, Generate, &selection), "drawn at random");
}

#[test]
fn auto_mode_never_lets_a_candidate_answer_itself() {
    for order in EVERY_ORDER {
        let mut alone = input().with_only(1).after_ai_message(1, "Ann?");
        alone.speakers_since_last_user_message.clear();

        assert_eq!(speaker(order, Auto, &alone), None, "{order:?}");
    }
}

#[test]
fn auto_mode_lets_a_candidate_answer_itself_where_the_space_allows_it() {
    for order in [Natural, List, Pooled] {
        let mut alone = input()
            .with_only(1)
            .after_ai_message(1, "Hm.")
            .with_self_responses();
        alone.speakers_since_last_user_message.clear();

        assert_eq!(speaker(order, Auto, &alone), Some(1), "{order:?}");
    }
    let named = input()
        .after_ai_message(1, "Ann thinks.")
        .with_self_responses();
    assert_eq!(speaker(Natural, Auto, &named), Some(1));
}

#[test]
fn auto_mode_skips_the_author_and_continues_the_rotation() {
    let selection = input().after_ai_message(1, "Ann thinks.").muted(2);

    assert_eq!(speaker(Natural, Auto, &selection), Some(3));
    assert_eq!(speaker(List, Auto, &selection), Some(3));
}

#[test]
fn a_user_message_excludes_no_candidate() {
    for order in [Natural, List, Pooled] {
        let alone = input()
            .with_only(1)
            .after_ai_message(1, "Hi.")
            .after_user_message("And?");

        assert_eq!(speaker(order, Human, &alone), Some(1), "{order:?}");
    }
}

#[test]
fn generate_always_selects_a_candidate_and_the_last_speaker_only_alone() {
    for order in EVERY_ORDER {
        let named = input().after_ai_message(2, "Bob!");
        let alone = input().with_only(2).after_ai_message(2, "Bob!");

        assert_ne!(speaker(order, Generate, &named), Some(2), "{order:?}");
        assert_eq!(speaker(order, Generate, &alone), Some(2), "{order:?}");
        assert!(speaker(order, Generate, &input()).is_some(), "{order:?}");
    }
}

#[test]
fn without_eligible_candidates_none_is_selected() {
    for order in EVERY_ORDER {
        for trigger in [Human, Auto, Generate] {
            let muted = input().muted(1).muted(2).muted(3);

            assert_eq!(speaker(order, trigger, &SelectionInput::default()), None);
            assert_eq!(speaker(order, trigger, &muted), None);
        }
    }
}

#[test]
fn a_muted_candidate_is_never_drawn() {
    for order in [Manual, Pooled] {
        let drawn = draws(order, Generate, &input().muted(2), 2_000);

        assert!(!drawn.contains_key(&2), "{drawn:?}");
    }
}

#[test]
fn the_same_seed_makes_the_same_choice() {
    for seed in 0..50 {
        let draw = || {
            let mut random = SeededRandom::from_seed(seed);
            select_one(Pooled, Human, &input(), &mut random)
        };

        assert_eq!(draw(), draw());
    }
}

#[test]
fn a_forced_choice_names_the_requesting_user() {
    assert_eq!(
        SpeakerChoice::forced(MembershipId(1), "Ann").reason,
        "forced by Ann"
    );
}
