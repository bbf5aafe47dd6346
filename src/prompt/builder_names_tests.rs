//! Tests of how the author of a message is named in the prompt.

use base::ids::MembershipId;
use serde_json::json;
use tavern::presets::complete_preset::NamesBehavior;

use super::build;
use super::tests::{group, member, solo};
use crate::prompt::blocks::BlockKind;
use crate::prompt::context::PromptContext;

/// Returns the name and the text of each message.
fn lines(mut context: PromptContext, names: NamesBehavior) -> Vec<(Option<String>, String)> {
    context.preset.names = names;
    let built = build(&context, &|_| 1).unwrap();
    let history = built.blocks.into_iter();
    let history = history.filter(|it| it.kind == BlockKind::History);
    history.map(|it| (it.name, it.text)).collect()
}

fn named(context: PromptContext, names: NamesBehavior) -> Vec<bool> {
    let lines = lines(context, names).into_iter();
    lines.map(|(name, _)| name.is_some()).collect()
}

#[test]
fn the_preset_decides_whether_names_are_included() {
    assert_eq!(named(solo(), NamesBehavior::Usual), [true, true]);
    assert_eq!(named(solo(), NamesBehavior::Never), [false, false]);
    assert_eq!(named(group(), NamesBehavior::Never), [false, false, false]);

    let in_text = lines(solo(), NamesBehavior::InText);
    assert_eq!(in_text[0], (None, "Ada: Good day.".to_owned()));
}

#[test]
fn names_are_included_where_several_authors_are_possible() {
    let mut two_people = solo();
    let mut other = two_people.history[1].clone();
    (other.author, other.name) = (MembershipId(9), "Eve".to_owned());
    two_people.history.push(other);

    assert_eq!(named(solo(), NamesBehavior::InGroups), [false, false]);
    assert_eq!(named(group(), NamesBehavior::InGroups), [true, true, true]);
    assert_eq!(
        named(two_people, NamesBehavior::InGroups),
        [true, true, true]
    );
}

#[test]
fn the_char_macro_gives_the_nickname_of_a_character() {
    let mut context = solo();
    let card = json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {
        "name": "Augusta Ada King", "nickname": "Ada", "description": "{{char}} counts.",
    }});
    context.members[1] = member(2, "Augusta Ada King", Some(card));

    let built = build(&context, &|_| 1).unwrap();

    assert!(built.messages[0].content.contains("Ada counts."));
    assert_eq!(built.speaker, "Augusta Ada King");
}
