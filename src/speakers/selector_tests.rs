//! The table of who speaks, row by row.

use std::collections::HashMap;

use super::Choice;
use super::MembershipId;
use super::ReplyOrder;
use super::Scene;
use super::SeededRandom;
use super::Trigger;
use super::select;
use crate::speakers::candidates::Candidate;

const EVERY_ORDER: [ReplyOrder; 4] = [
    ReplyOrder::Manual,
    ReplyOrder::Natural,
    ReplyOrder::List,
    ReplyOrder::Pooled,
];

/// Ann 1, Bob 2, Cid 3, in this order at the table, but not in the list.
fn scene() -> Scene {
    let candidate = |id, name: &str| Candidate {
        id: MembershipId(id),
        position: id * 10,
        names: vec![name.into()],
        talkativeness: 0.5,
        schedulable: true,
    };
    Scene {
        candidates: vec![
            candidate(3, "Cid"),
            candidate(1, "Ann"),
            candidate(2, "Bob"),
        ],
        ..Scene::default()
    }
}

impl Scene {
    /// The AI with this id spoke last, with this text.
    fn ai_said(mut self, id: i64, text: &str) -> Self {
        self.last_speaker = Some(MembershipId(id));
        self.newest_author = Some(MembershipId(id));
        self.newest_text = text.into();
        self.spoken_in_epoch.insert(MembershipId(id));
        self
    }

    /// A human spoke last, with this text: an epoch begins.
    fn human_said(mut self, text: &str) -> Self {
        self.newest_author = Some(MembershipId(100));
        self.newest_text = text.into();
        self.spoken_in_epoch.clear();
        self
    }

    fn muted(mut self, id: i64) -> Self {
        let mut them = self.candidates.iter_mut();
        them.find(|it| it.id.0 == id).expect("a seat").schedulable = false;
        self
    }

    fn only(mut self, id: i64) -> Self {
        self.candidates.retain(|it| it.id.0 == id);
        self
    }

    fn self_responses(mut self) -> Self {
        self.allow_self_responses = true;
        self
    }
}

fn speaker(order: ReplyOrder, trigger: Trigger, scene: &Scene) -> Option<i64> {
    select(order, trigger, scene, &mut SeededRandom::from_seed(1)).map(|it| it.id.0)
}

fn because(order: ReplyOrder, trigger: Trigger, scene: &Scene) -> String {
    select(order, trigger, scene, &mut SeededRandom::from_seed(1))
        .expect("somebody speaks")
        .because
}

/// How often each was drawn in `n` draws with one pair of dice.
fn draws(order: ReplyOrder, trigger: Trigger, scene: &Scene, n: usize) -> HashMap<i64, usize> {
    let mut dice = SeededRandom::from_seed(2026);
    let mut drawn = HashMap::new();
    for _ in 0..n {
        let choice = select(order, trigger, scene, &mut dice).expect("somebody speaks");
        *drawn.entry(choice.id.0).or_default() += 1;
    }
    drawn
}

#[test]
fn manual_stays_silent_after_a_human_message() {
    let scene = scene().human_said("Bob?");

    assert_eq!(speaker(ReplyOrder::Manual, Trigger::Human, &scene), None);
}

#[test]
fn manual_stays_silent_in_auto_mode() {
    let scene = scene().ai_said(1, "Bob?").self_responses();

    assert_eq!(speaker(ReplyOrder::Manual, Trigger::Auto, &scene), None);
}

#[test]
fn manual_generate_draws_any_but_the_last_speaker() {
    let scene = scene().ai_said(2, "Hi.");

    let drawn = draws(ReplyOrder::Manual, Trigger::Generate, &scene, 20_000);

    assert_eq!(drawn.len(), 2);
    assert!((9_700..10_300).contains(&drawn[&1]), "{drawn:?}");
    assert!((9_700..10_300).contains(&drawn[&3]), "{drawn:?}");
    assert_eq!(
        because(ReplyOrder::Manual, Trigger::Generate, &scene),
        "drawn at random"
    );
}

#[test]
fn natural_wakes_the_first_mentioned() {
    let scene = scene().ai_said(1, "Hi.").human_said("Cid or Bob?");

    assert_eq!(
        speaker(ReplyOrder::Natural, Trigger::Human, &scene),
        Some(3)
    );
    assert_eq!(
        because(ReplyOrder::Natural, Trigger::Human, &scene),
        "mentioned \"Cid\""
    );
}

#[test]
fn natural_wakes_who_is_mentioned_by_id() {
    let mut scene = scene().ai_said(1, "Hi.").human_said("Bob?");
    scene.mentions = vec![MembershipId(3)];

    assert_eq!(
        speaker(ReplyOrder::Natural, Trigger::Human, &scene),
        Some(3)
    );
}

#[test]
fn natural_without_a_mention_goes_round_from_the_last_speaker() {
    let after = |id| {
        let scene = scene().ai_said(id, "Hi.").human_said("Well?");
        speaker(ReplyOrder::Natural, Trigger::Human, &scene)
    };

    assert_eq!([after(1), after(2), after(3)], [Some(2), Some(3), Some(1)]);
    let first = scene().human_said("Hello.");
    assert_eq!(
        speaker(ReplyOrder::Natural, Trigger::Human, &first),
        Some(1)
    );
    assert_eq!(
        because(ReplyOrder::Natural, Trigger::Human, &first),
        "next in rotation"
    );
}

#[test]
fn natural_reads_mentions_in_the_text_of_an_ai() {
    let scene = scene().ai_said(1, "Ann agrees with Cid.");

    assert_eq!(speaker(ReplyOrder::Natural, Trigger::Auto, &scene), Some(3));
    assert_eq!(
        speaker(ReplyOrder::Natural, Trigger::Generate, &scene),
        Some(3)
    );
}

#[test]
fn natural_passes_over_a_muted_one_who_is_mentioned() {
    let scene = scene().ai_said(1, "Hi.").human_said("Cid?").muted(3);

    assert_eq!(
        speaker(ReplyOrder::Natural, Trigger::Human, &scene),
        Some(2)
    );
}

#[test]
fn a_human_may_wake_the_last_speaker_again() {
    let scene = scene().ai_said(2, "Hi.").human_said("Bob, again!");

    assert_eq!(
        speaker(ReplyOrder::Natural, Trigger::Human, &scene),
        Some(2)
    );
}

#[test]
fn list_goes_by_position_and_wraps_for_every_trigger() {
    for trigger in [Trigger::Human, Trigger::Auto, Trigger::Generate] {
        let after = |id| speaker(ReplyOrder::List, trigger, &scene().ai_said(id, "Cid!"));

        assert_eq!([after(1), after(2), after(3)], [Some(2), Some(3), Some(1)]);
        assert_eq!(speaker(ReplyOrder::List, trigger, &scene()), Some(1));
    }
    assert_eq!(
        because(ReplyOrder::List, Trigger::Human, &scene()),
        "next by position"
    );
}

#[test]
fn equal_positions_are_ordered_by_id() {
    let mut scene = scene().ai_said(1, "Hi.");
    for candidate in &mut scene.candidates {
        candidate.position = 0;
    }

    assert_eq!(speaker(ReplyOrder::List, Trigger::Human, &scene), Some(2));
}

#[test]
fn the_circle_goes_on_from_the_seat_of_a_muted_speaker() {
    let scene = scene().ai_said(2, "Hi.").human_said("Well?").muted(2);

    assert_eq!(speaker(ReplyOrder::List, Trigger::Human, &scene), Some(3));
}

#[test]
fn the_circle_begins_anew_when_the_last_speaker_has_left() {
    let scene = scene().ai_said(77, "Bye.").human_said("Well?");

    assert_eq!(speaker(ReplyOrder::List, Trigger::Human, &scene), Some(1));
}

#[test]
fn pooled_draws_uniformly_after_a_human_message() {
    let scene = scene().ai_said(2, "Hi.").human_said("Bob?");

    let drawn = draws(ReplyOrder::Pooled, Trigger::Human, &scene, 20_000);

    assert_eq!(drawn.len(), 3);
    assert!(
        drawn.values().all(|it| (6_300..7_040).contains(it)),
        "{drawn:?}"
    );
}

#[test]
fn pooled_leaves_out_who_has_spoken_in_the_epoch() {
    let scene = scene().ai_said(1, "Hi.").ai_said(3, "Hi.");

    for trigger in [Trigger::Auto, Trigger::Generate] {
        assert_eq!(speaker(ReplyOrder::Pooled, trigger, &scene), Some(2));
        let because = because(ReplyOrder::Pooled, trigger, &scene);
        assert_eq!(because, "drawn from those who have not spoken yet");
    }
}

#[test]
fn pooled_with_an_empty_pool_rests_in_auto_mode() {
    let scene = scene()
        .ai_said(1, "a")
        .ai_said(2, "b")
        .ai_said(3, "c")
        .self_responses();

    assert_eq!(speaker(ReplyOrder::Pooled, Trigger::Auto, &scene), None);
}

#[test]
fn pooled_with_an_empty_pool_draws_any_but_the_last_for_generate() {
    let scene = scene().ai_said(1, "a").ai_said(2, "b").ai_said(3, "c");

    let drawn = draws(ReplyOrder::Pooled, Trigger::Generate, &scene, 20_000);

    assert_eq!(drawn.len(), 2);
    assert!((9_700..10_300).contains(&drawn[&1]), "{drawn:?}");
    assert_eq!(
        because(ReplyOrder::Pooled, Trigger::Generate, &scene),
        "drawn at random"
    );
}

#[test]
fn auto_mode_never_lets_one_answer_itself() {
    for order in EVERY_ORDER {
        let mut alone = scene().only(1).ai_said(1, "Ann?");
        alone.spoken_in_epoch.clear();

        assert_eq!(speaker(order, Trigger::Auto, &alone), None, "{order:?}");
    }
}

#[test]
fn auto_mode_lets_one_answer_itself_where_the_space_allows_it() {
    for order in [ReplyOrder::Natural, ReplyOrder::List, ReplyOrder::Pooled] {
        let mut alone = scene().only(1).ai_said(1, "Hm.").self_responses();
        alone.spoken_in_epoch.clear();

        assert_eq!(speaker(order, Trigger::Auto, &alone), Some(1), "{order:?}");
    }
    let named = scene().ai_said(1, "Ann thinks.").self_responses();
    assert_eq!(speaker(ReplyOrder::Natural, Trigger::Auto, &named), Some(1));
}

#[test]
fn auto_mode_skips_the_author_and_goes_on_round_the_circle() {
    let scene = scene().ai_said(1, "Ann thinks.").muted(2);

    assert_eq!(speaker(ReplyOrder::Natural, Trigger::Auto, &scene), Some(3));
    assert_eq!(speaker(ReplyOrder::List, Trigger::Auto, &scene), Some(3));
}

#[test]
fn a_human_message_bars_nobody() {
    for order in [ReplyOrder::Natural, ReplyOrder::List, ReplyOrder::Pooled] {
        let alone = scene().only(1).ai_said(1, "Hi.").human_said("And?");

        assert_eq!(speaker(order, Trigger::Human, &alone), Some(1), "{order:?}");
    }
}

#[test]
fn generate_always_wakes_somebody_and_the_last_speaker_only_alone() {
    for order in EVERY_ORDER {
        let named = scene().ai_said(2, "Bob!");
        let alone = scene().only(2).ai_said(2, "Bob!");

        assert_ne!(
            speaker(order, Trigger::Generate, &named),
            Some(2),
            "{order:?}"
        );
        assert_eq!(
            speaker(order, Trigger::Generate, &alone),
            Some(2),
            "{order:?}"
        );
        assert!(
            speaker(order, Trigger::Generate, &scene()).is_some(),
            "{order:?}"
        );
    }
}

#[test]
fn nobody_speaks_where_nobody_can() {
    for order in EVERY_ORDER {
        for trigger in [Trigger::Human, Trigger::Auto, Trigger::Generate] {
            let muted = scene().muted(1).muted(2).muted(3);

            assert_eq!(speaker(order, trigger, &Scene::default()), None);
            assert_eq!(speaker(order, trigger, &muted), None);
        }
    }
}

#[test]
fn a_muted_one_is_never_drawn() {
    for order in [ReplyOrder::Manual, ReplyOrder::Pooled] {
        let drawn = draws(order, Trigger::Generate, &scene().muted(2), 2_000);

        assert!(!drawn.contains_key(&2), "{drawn:?}");
    }
}

#[test]
fn the_same_seed_makes_the_same_choice() {
    for seed in 0..50 {
        let draw = || {
            let mut dice = SeededRandom::from_seed(seed);
            select(ReplyOrder::Pooled, Trigger::Human, &scene(), &mut dice)
        };

        assert_eq!(draw(), draw());
    }
}

#[test]
fn a_forced_choice_names_who_forced_it() {
    assert_eq!(
        Choice::forced(MembershipId(1), "Ann").because,
        "forced by Ann"
    );
}
