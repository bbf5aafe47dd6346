//! Tests which candidate claims a range of the text, and the order of the mentions.

use super::{Candidate, MembershipId, Mention, find};

/// Returns candidates with ids and positions 1, 2, 3 …; `|` separates the names of one candidate, a
/// leading `-` mutes it.
fn candidates(names: &[&str]) -> Vec<Candidate> {
    let numbered = (1..).zip(names);
    numbered
        .map(|(number, names)| Candidate {
            id: MembershipId(number),
            is_person: false,
            position: number,
            names: names
                .trim_start_matches('-')
                .split('|')
                .map(str::to_owned)
                .collect(),
            talkativeness: 0.5,
            is_schedulable: !names.starts_with('-'),
        })
        .collect()
}

pub fn mentioned_ids(text: &str, names: &[&str]) -> Vec<i64> {
    mentioned_ids_with(text, &[], names)
}

fn mentioned_ids_with(text: &str, explicit: &[i64], names: &[&str]) -> Vec<i64> {
    let explicit: Vec<MembershipId> = explicit.iter().copied().map(MembershipId).collect();
    let mentions = find(text, &explicit, &candidates(names));
    mentions.into_iter().map(|it| it.id.0).collect()
}

#[test]
fn the_longest_name_at_a_position_is_mentioned() {
    let names = ["Flux", "Flux the Cat"];

    assert_eq!(mentioned_ids("Flux the Cat sleeps", &names), [2]);
    assert_eq!(mentioned_ids("Flux sleeps", &names), [1]);
    assert_eq!(mentioned_ids("Flux the Cat and Flux", &names), [2, 1]);
    assert_eq!(mentioned_ids("孫悟空", &["悟空", "孫悟空"]), [2]);
}

#[test]
fn a_full_name_takes_precedence_over_a_word_of_another() {
    assert_eq!(
        mentioned_ids("Lancelot", &["Sir Lancelot", "Lancelot"]),
        [2]
    );
    assert_eq!(mentioned_ids("cat", &["Flux the Cat", "Tom|cat"]), [2]);
}

#[test]
fn of_candidates_with_one_name_the_first_by_position_is_mentioned() {
    assert_eq!(mentioned_ids("Ann", &["Ann Lee", "Ann Moe"]), [1]);
    assert_eq!(mentioned_ids("Ann", &["Ann", "Ann"]), [1]);
    assert_eq!(mentioned_ids("Ann Moe", &["Ann Lee", "Ann Moe"]), [2]);
}

#[test]
fn aliases_count_like_names() {
    assert_eq!(
        mentioned_ids("hey Boss", &["Ann", "Bob|Boss|the old man"]),
        [2]
    );
    assert_eq!(
        mentioned_ids("ask THE OLD MAN", &["Ann", "Bob|Boss|the old man"]),
        [2]
    );
}

#[test]
fn mentions_follow_text_order_without_duplicates() {
    assert_eq!(
        mentioned_ids("Cid, Ann, cid, Bob", &["Ann", "Bob", "Cid"]),
        [3, 1, 2]
    );
    assert_eq!(
        mentioned_ids("Lancelot and Bob", &["Bob", "Sir Lancelot"]),
        [2, 1]
    );
}

#[test]
fn a_muted_candidate_claims_its_name_and_is_not_mentioned() {
    assert_eq!(mentioned_ids("Bob!", &["-Bob"]), [] as [i64; 0]);
    assert_eq!(
        mentioned_ids("Ann Lee!", &["-Ann Lee", "Ann Moe"]),
        [] as [i64; 0]
    );
    assert_eq!(mentioned_ids("Bob", &["-Bob", "Bob Moe"]), [] as [i64; 0]);
    assert_eq!(mentioned_ids("Bob and Cid", &["-Bob", "Cid"]), [2]);
}

#[test]
fn a_muted_candidate_does_not_precede_a_namesake() {
    assert_eq!(mentioned_ids("Bob", &["-Bob", "Bob"]), [2]);
    assert_eq!(mentioned_ids("Ann", &["-Ann Lee", "Ann Moe"]), [2]);
}

#[test]
fn a_mention_by_id_has_the_position_of_its_at_name() {
    let names = ["Ann", "Bob"];

    assert_eq!(mentioned_ids_with("Ann, ask @Bob", &[2], &names), [1, 2]);
    assert_eq!(mentioned_ids_with("@Bob, ask Ann", &[2], &names), [2, 1]);
    assert_eq!(mentioned_ids_with("@bobby and Ann", &[2], &names), [2, 1]);
}

#[test]
fn a_mention_by_id_without_its_name_comes_before_all_others() {
    let names = ["Ann", "Bob", "Cid"];

    assert_eq!(mentioned_ids_with("Ann, hello", &[3, 2], &names), [3, 2, 1]);
    assert_eq!(mentioned_ids_with("", &[2], &names), [2]);
    assert_eq!(mentioned_ids_with("Bob", &[2, 2], &names), [2]);
}

#[test]
fn a_mention_by_id_decides_between_two_namesakes() {
    assert_eq!(mentioned_ids_with("@Bob hi", &[2], &["Bob", "Bob"]), [2]);
    assert_eq!(
        mentioned_ids_with("@Ann Marie hi", &[1], &["Ann|Ann Marie", "Marie"]),
        [1]
    );
    assert_eq!(
        mentioned_ids_with("@Ann Marie, @Ann", &[1, 2], &["Ann", "Ann Marie"]),
        [2, 1]
    );
    assert_eq!(
        mentioned_ids_with("@Bob and @Bob", &[2, 1], &["Bob", "Bob"]),
        [2, 1]
    );
}

#[test]
fn a_muted_or_unknown_id_mentions_no_candidate() {
    assert_eq!(
        mentioned_ids_with("@Bob", &[1], &["-Bob", "Bob"]),
        [] as [i64; 0]
    );
    assert_eq!(mentioned_ids_with("hello", &[9], &["Bob"]), [] as [i64; 0]);
}

#[test]
fn the_reason_shows_the_matched_name() {
    let mentions = find("lancelot!", &[], &candidates(&["Sir Lancelot"]));

    assert_eq!(
        mentions,
        [Mention {
            id: MembershipId(1),
            name: "Lancelot".into()
        }]
    );
}

#[test]
fn a_long_text_is_scanned_quickly() {
    let names: Vec<String> = (0..40).map(|it| format!("Name{it} Of House{it}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let text = format!("{} Name39", "word 字 _x_ ".repeat(4_000));

    assert_eq!(mentioned_ids(&text, &names), [40]);
}
