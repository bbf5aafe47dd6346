//! The ordered lists of `replies_per_turn = activated`, row by row, and their chances.

use super::MembershipId;
use super::ReplyOrder;
use super::Scene;
use super::SeededRandom;
use super::Trigger;
use super::activate;
use crate::speakers::candidates::Candidate;
use std::collections::HashMap;
use std::collections::HashSet;

const N: usize = 40_000;

/// Ann 1, Bob 2, Cid 3, in this order at the table; as talkative as told.
fn scene(talkativeness: [f64; 3]) -> Scene {
    let seats = (1..).zip(["Ann", "Bob", "Cid"]).zip(talkativeness);
    let candidates = seats.map(|((id, name), talkativeness)| Candidate {
        id: MembershipId(id),
        position: id * 10,
        names: vec![name.into()],
        talkativeness,
        schedulable: true,
    });
    Scene {
        candidates: candidates.collect(),
        newest_author: Some(MembershipId(100)),
        newest_text: "Well?".into(),
        ..Scene::default()
    }
}

fn says(text: &str, talkativeness: [f64; 3]) -> Scene {
    Scene {
        newest_text: text.into(),
        ..scene(talkativeness)
    }
}

fn speakers(order: ReplyOrder, trigger: Trigger, scene: &Scene) -> Vec<i64> {
    let chosen = activate(order, trigger, scene, &mut SeededRandom::from_seed(1));
    chosen.iter().map(|it| it.id.0).collect()
}

/// The lists of many draws with one pair of dice.
fn draws(order: ReplyOrder, scene: &Scene) -> Vec<Vec<i64>> {
    let mut dice = SeededRandom::from_seed(2026);
    let draw = |_| {
        let chosen = activate(order, Trigger::Human, scene, &mut dice);
        chosen.iter().map(|it| it.id.0).collect()
    };
    (0..N).map(draw).collect()
}

/// Whether something that happens with chance `p` may have happened `n` times in all draws: five
/// binomial deviations, which chance leaves once in two million tests.
fn agrees(n: usize, p: f64) -> bool {
    let (n, draws) = (n as f64, N as f64);
    (n - draws * p).abs() <= 5.0 * (draws * p * (1.0 - p)).sqrt()
}

fn count(lists: &[Vec<i64>], fits: impl Fn(&Vec<i64>) -> bool) -> usize {
    lists.iter().filter(|it| fits(it)).count()
}

#[test]
fn manual_wakes_nobody() {
    for trigger in [Trigger::Human, Trigger::Auto] {
        let woken = speakers(ReplyOrder::Manual, trigger, &says("Bob?", [1.0; 3]));

        assert!(woken.is_empty());
    }
}

#[test]
fn list_wakes_everybody_by_position() {
    let mut scene = scene([0.0; 3]);
    scene.candidates.reverse();
    scene.last_speaker = Some(MembershipId(2));

    assert_eq!(
        speakers(ReplyOrder::List, Trigger::Human, &scene),
        [1, 2, 3]
    );
    scene.candidates[1].schedulable = false;
    assert_eq!(speakers(ReplyOrder::List, Trigger::Human, &scene), [1, 3]);
}

#[test]
fn natural_wakes_the_mentioned_in_the_order_of_the_text() {
    let scene = says("Cid, ask Ann, and Cid again.", [0.0; 3]);

    let chosen = activate(
        ReplyOrder::Natural,
        Trigger::Human,
        &scene,
        &mut SeededRandom::from_seed(1),
    );

    let told: Vec<(i64, &str)> = chosen
        .iter()
        .map(|it| (it.id.0, it.because.as_str()))
        .collect();
    assert_eq!(told, [(3, r#"mentioned "Cid""#), (1, r#"mentioned "Ann""#)]);
}

#[test]
fn natural_lets_the_mentioned_speak_before_those_who_join_in_and_each_once() {
    let lists = draws(ReplyOrder::Natural, &says("Bob!", [1.0, 1.0, 0.5]));

    assert!(lists.iter().all(|it| it[0] == 2));
    for list in &lists {
        let once: HashSet<&i64> = list.iter().collect();
        assert_eq!(once.len(), list.len(), "{list:?}");
    }
    assert!(agrees(count(&lists, |it| it.contains(&3)), 0.5));
    assert!(agrees(count(&lists, |it| it.len() == 2), 0.5));
    assert!(
        lists.iter().all(|it| it.contains(&1)),
        "always the talkative"
    );
}

#[test]
fn natural_tells_what_was_drawn() {
    let mut dice = SeededRandom::from_seed(3);
    let everybody = scene([1.0, 0.5, 0.25]);

    for _ in 0..200 {
        for choice in activate(ReplyOrder::Natural, Trigger::Human, &everybody, &mut dice) {
            let stated = ["1.00", "0.50", "0.25"][usize::try_from(choice.id.0 - 1).unwrap()];
            let because = choice.because;
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
fn three_of_even_talkativeness_speak_one_two_or_three_by_their_exact_chances() {
    let lists = draws(ReplyOrder::Natural, &scene([0.5; 3]));

    for (n, p) in [(1, 0.5), (2, 0.375), (3, 0.125)] {
        let fell = count(&lists, |it| it.len() == n);
        assert!(agrees(fell, p), "{n} speakers: {fell} of {N}, expected {p}");
    }
}

#[test]
fn each_joins_in_as_often_as_it_is_talkative() {
    // Nobody is left over: the first always speaks, so nobody has to break the silence.
    let lists = draws(ReplyOrder::Natural, &scene([1.0, 0.3, 0.05]));

    for (id, p) in [(1, 1.0), (2, 0.3), (3, 0.05)] {
        let fell = count(&lists, |it| it.contains(&id));
        assert!(agrees(fell, p), "{id}: {fell} of {N}, expected {p}");
    }
}

#[test]
fn who_joins_in_stands_in_any_order_as_often() {
    let lists = draws(ReplyOrder::Natural, &scene([1.0; 3]));

    let mut orders: HashMap<&Vec<i64>, usize> = HashMap::new();
    for list in &lists {
        *orders.entry(list).or_default() += 1;
    }
    assert_eq!(orders.len(), 6);
    assert!(orders.values().all(|n| agrees(*n, 1.0 / 6.0)), "{orders:?}");
}

#[test]
fn the_silence_is_broken_by_any_who_ever_join_in_as_often() {
    // 0.9 × 0.8 of the draws wake nobody; half of those go to each. Ann never joins in.
    let lists = draws(ReplyOrder::Natural, &scene([0.0, 0.1, 0.2]));

    let alone = |id| count(&lists, |it| *it == [id]);
    assert_eq!(count(&lists, |it| it.contains(&1)), 0, "0 is never");
    let silence = 0.9 * 0.8;
    assert!(agrees(alone(2), 0.1 * 0.8 + silence / 2.0));
    assert!(agrees(alone(3), 0.9 * 0.2 + silence / 2.0));
    assert!(agrees(count(&lists, |it| it.len() == 2), 0.1 * 0.2));
}

#[test]
fn where_nobody_ever_joins_in_anybody_breaks_the_silence() {
    let lists = draws(ReplyOrder::Natural, &scene([0.0; 3]));

    assert!(lists.iter().all(|it| it.len() == 1));
    for id in 1..=3 {
        let fell = count(&lists, |it| *it == [id]);
        assert!(agrees(fell, 1.0 / 3.0), "{id}: {fell}");
    }
}

#[test]
fn pooled_wakes_one_and_prefers_who_has_not_spoken() {
    let fresh = draws(ReplyOrder::Pooled, &scene([0.0; 3]));
    let mut later = scene([0.0; 3]);
    later.spoken_in_epoch = HashSet::from([MembershipId(2)]);
    let rest = draws(ReplyOrder::Pooled, &later);
    later
        .spoken_in_epoch
        .extend([MembershipId(1), MembershipId(3)]);
    let spent = draws(ReplyOrder::Pooled, &later);

    for id in 1..=3 {
        assert!(agrees(count(&fresh, |it| *it == [id]), 1.0 / 3.0));
        assert!(agrees(count(&spent, |it| *it == [id]), 1.0 / 3.0));
    }
    assert!(agrees(count(&rest, |it| *it == [1]), 0.5));
    assert!(agrees(count(&rest, |it| *it == [3]), 0.5));
    assert_eq!(count(&rest, |it| it.contains(&2)), 0);
}

#[test]
fn in_auto_mode_the_author_of_the_newest_message_is_no_candidate() {
    for order in [ReplyOrder::Natural, ReplyOrder::List, ReplyOrder::Pooled] {
        let mut scene = says("Ann, I am Ann.", [1.0; 3]);
        scene.newest_author = Some(MembershipId(1));

        let others = speakers(order, Trigger::Auto, &scene);
        scene.allow_self_responses = true;
        let all = activate(
            order,
            Trigger::Auto,
            &scene,
            &mut SeededRandom::from_seed(1),
        );
        scene.allow_self_responses = false;
        scene.candidates.truncate(1);
        let alone = speakers(order, Trigger::Auto, &scene);

        assert!(
            !others.contains(&1) && !others.is_empty(),
            "{order:?}: {others:?}"
        );
        assert!(order == ReplyOrder::Pooled || all.len() == 3, "{order:?}");
        assert!(
            alone.is_empty(),
            "{order:?}: it rests when that leaves nobody"
        );
    }
}

#[test]
fn the_same_seed_wakes_the_same_list() {
    let scene = scene([0.5; 3]);
    for seed in 0..100 {
        let list = || {
            activate(
                ReplyOrder::Natural,
                Trigger::Human,
                &scene,
                &mut SeededRandom::from_seed(seed),
            )
        };

        assert_eq!(list(), list());
    }
}
