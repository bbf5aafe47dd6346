//! Whose the names of a file are.

use super::Author;
use super::Authors;
use super::Choice;
use super::Name;
use crate::clock::Timestamp;
use crate::ids::MembershipId;
use crate::ids::SpaceId;
use crate::spaces::membership::MembershipKind;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Model;
use crate::spaces::roster;
use sea_orm::ActiveValue::Set;
use sea_orm::TryIntoModel;
use serde_json::json;
use std::collections::HashMap;

fn seat(id: i64, kind: MembershipKind, name: &str, status: MembershipStatus) -> Model {
    let mut row = roster::left(SpaceId(1), kind, name.to_owned(), id, Timestamp(0));
    row.id = Set(MembershipId(id));
    row.status = Set(status);
    row.try_into_model().unwrap()
}

fn cast() -> Vec<Model> {
    let mut ada = seat(
        3,
        MembershipKind::Character,
        "Ada",
        MembershipStatus::Active,
    );
    ada.aliases = json!(["The Countess"]);
    vec![
        seat(1, MembershipKind::Human, "Ann", MembershipStatus::Active),
        seat(
            2,
            MembershipKind::Character,
            "Ada",
            MembershipStatus::Removed,
        ),
        ada,
        seat(4, MembershipKind::Human, "Ada", MembershipStatus::Active),
        seat(5, MembershipKind::Human, "Ben", MembershipStatus::Removed),
    ]
}

fn name(name: &str, is_user: bool) -> Name {
    let name = name.to_owned();
    Name { name, is_user }
}

fn seated(id: i64) -> Author {
    Author::Seated(MembershipId(id))
}

#[test]
fn a_name_belongs_to_whoever_has_it_here() {
    let mut all = Authors::of(&cast(), Some(MembershipId(1)), HashMap::new());

    assert_eq!(all.of_name(name("ＡＤＡ", false)), seated(3));
    assert_eq!(all.of_name(name("the countess", false)), seated(3));
    assert_eq!(all.of_name(name("Ada", true)), seated(4));
    assert_eq!(all.of_name(name("Ben", true)), seated(5));
}

#[test]
fn the_first_unknown_person_is_whoever_imports_and_everybody_else_is_new() {
    let mut all = Authors::of(&cast(), Some(MembershipId(1)), HashMap::new());

    assert_eq!(
        all.of_name(name("Zoe", false)),
        Author::New(name("Zoe", false))
    );
    assert_eq!(all.of_name(name("Kai", true)), seated(1));
    assert_eq!(all.of_name(name("Lu", true)), Author::New(name("Lu", true)));
    assert_eq!(
        all.of_name(name("Kai", true)),
        seated(1),
        "the same each time"
    );
    all.seat(&name("Lu", true), MembershipId(9));
    assert_eq!(all.of_name(name("Lu", true)), seated(9));
}

#[test]
fn what_was_said_of_a_name_holds() {
    let chosen = HashMap::from([
        ("Ada".to_owned(), Choice::New),
        ("Kai".to_owned(), Choice::Seat(MembershipId(5))),
    ]);
    let mut all = Authors::of(&cast(), None, chosen);

    assert_eq!(
        all.of_name(name("Ada", false)),
        Author::New(name("Ada", false))
    );
    assert_eq!(all.of_name(name("Kai", true)), seated(5));
    assert_eq!(all.of_name(name("Lu", true)), Author::New(name("Lu", true)));
}

#[test]
fn a_file_with_names_without_end_makes_a_bounded_number_of_seats() {
    let mut all = Authors::of(&[], None, HashMap::new());
    let mut made = std::collections::HashSet::new();

    for n in 0..10_000 {
        if let Author::New(new) = all.of_name(name(&format!("N{n}"), false)) {
            made.insert(new);
        }
    }

    assert_eq!(made.len(), 201);
    assert!(made.contains(&name("Others", false)));
}
