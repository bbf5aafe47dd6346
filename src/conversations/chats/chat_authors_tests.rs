//! Tests of mapping the author names of a chat file to memberships.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{MembershipId, SpaceId};
use sea_orm::ActiveValue::Set;
use sea_orm::TryIntoModel;
use serde_json::json;

use super::{AuthorChoice, AuthorMap, AuthorName, AuthorTarget};
use crate::spaces::membership::{MembershipKind, MembershipStatus, Model};
use crate::spaces::roster_changes;

fn membership(id: i64, kind: MembershipKind, name: &str, status: MembershipStatus) -> Model {
    let mut row =
        roster_changes::removed_member(SpaceId(1), kind, name.to_owned(), id, Timestamp(0));
    row.id = Set(MembershipId(id));
    row.status = Set(status);
    row.try_into_model().unwrap()
}

fn memberships() -> Vec<Model> {
    let mut ada = membership(
        3,
        MembershipKind::Character,
        "Ada",
        MembershipStatus::Active,
    );
    ada.aliases = json!(["The Countess"]);
    vec![
        membership(1, MembershipKind::Human, "Ann", MembershipStatus::Active),
        membership(
            2,
            MembershipKind::Character,
            "Ada",
            MembershipStatus::Removed,
        ),
        ada,
        membership(4, MembershipKind::Human, "Ada", MembershipStatus::Active),
        membership(5, MembershipKind::Human, "Ben", MembershipStatus::Removed),
    ]
}

fn name(name: &str, is_user: bool) -> AuthorName {
    let name = name.to_owned();
    AuthorName { name, is_user }
}

fn existing(id: i64) -> AuthorTarget {
    AuthorTarget::Existing(MembershipId(id))
}

#[test]
fn a_name_resolves_to_the_member_that_has_it() {
    let mut all = AuthorMap::new(&memberships(), Some(MembershipId(1)), HashMap::new());

    assert_eq!(all.resolve(name("ＡＤＡ", false)), existing(3));
    assert_eq!(all.resolve(name("the countess", false)), existing(3));
    assert_eq!(all.resolve(name("Ada", true)), existing(4));
    assert_eq!(all.resolve(name("Ben", true)), existing(5));
}

#[test]
fn a_whisper_to_unknown_names_is_for_the_importing_user() {
    let all = AuthorMap::new(&memberships(), Some(MembershipId(1)), HashMap::new());
    let listeners = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let found = all.listeners(&names);
        let members: Vec<i64> = found.members.iter().map(|it| it.0).collect();
        (members, found.has_character)
    };

    assert_eq!(listeners(&["Zoe"]), (vec![1], false));
    assert_eq!(listeners(&[]), (vec![1], false));
    assert_eq!(listeners(&["Ben", "Zoe"]), (vec![5], false));
    assert_eq!(listeners(&["the countess", "ben"]), (vec![3, 5], true));
    assert_eq!(listeners(&["Ada"]).0.len(), 1, "of namesakes one");
}

#[test]
fn the_first_unknown_person_is_the_importer_and_others_are_new() {
    let mut all = AuthorMap::new(&memberships(), Some(MembershipId(1)), HashMap::new());

    assert_eq!(
        all.resolve(name("Zoe", false)),
        AuthorTarget::New(name("Zoe", false))
    );
    assert_eq!(all.resolve(name("Kai", true)), existing(1));
    assert_eq!(
        all.resolve(name("Lu", true)),
        AuthorTarget::New(name("Lu", true))
    );
    assert_eq!(
        all.resolve(name("Kai", true)),
        existing(1),
        "a repeated lookup should give the same result"
    );
    all.set_membership(&name("Lu", true), MembershipId(9));
    assert_eq!(all.resolve(name("Lu", true)), existing(9));
}

#[test]
fn a_choice_for_a_name_is_respected() {
    let chosen = HashMap::from([
        ("Ada".to_owned(), AuthorChoice::New),
        ("Kai".to_owned(), AuthorChoice::Membership(MembershipId(5))),
    ]);
    let mut all = AuthorMap::new(&memberships(), None, chosen);

    assert_eq!(
        all.resolve(name("Ada", false)),
        AuthorTarget::New(name("Ada", false))
    );
    assert_eq!(all.resolve(name("Kai", true)), existing(5));
    assert_eq!(
        all.resolve(name("Lu", true)),
        AuthorTarget::New(name("Lu", true))
    );
}

#[test]
fn the_number_of_new_members_is_bounded() {
    let mut all = AuthorMap::new(&[], None, HashMap::new());
    let mut made = std::collections::HashSet::new();

    for n in 0..10_000 {
        if let AuthorTarget::New(new) = all.resolve(name(&format!("N{n}"), false)) {
            made.insert(new);
        }
    }

    assert_eq!(made.len(), 201);
    assert!(made.contains(&name("Others", false)));
}
