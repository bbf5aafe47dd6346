//! Tests of scripts in prompts.

use std::sync::Arc;

use tavern::macros::card_use::CardUse;
use tavern::regex_scripts::script::RegexScript;

use crate::prompt::blocks::{BlockKind, PromptBlock};
use crate::prompt::builder::build;
use crate::prompt::builder::tests::solo;
use crate::prompt::context::PromptContext;
use crate::prompt::scripts::prompt_scripts::PromptScripts;
use crate::regex_scripts::speaker_scripts::SpeakerScripts;

fn script(name: &str, find_regex: &str, replace_string: &str) -> RegexScript {
    RegexScript {
        name: name.into(),
        find_regex: find_regex.into(),
        replace_string: replace_string.into(),
        placement: vec![1, 2],
        prompt_only: true,
        ..RegexScript::default()
    }
}

fn with_scripts(scripts: &[RegexScript]) -> PromptContext {
    let mut own = SpeakerScripts::default();
    own.add(scripts, true, &"Ada".into());
    PromptContext {
        scripts: PromptScripts::OfCharacter(Arc::new(own)),
        ..solo()
    }
}

fn history(blocks: &[PromptBlock]) -> Vec<(&str, CardUse)> {
    let history = blocks.iter().filter(|it| it.kind == BlockKind::History);
    history.map(|it| (it.text.as_str(), it.card_use)).collect()
}

#[test]
fn scripts_change_what_is_sent_and_are_reported() {
    let context = with_scripts(&[
        script("Day", "/day/g", "night of {{user}}"),
        script("Nothing", "/x{9}/g", ""),
        script("Broken", "/(/g", ""),
    ]);

    let built = build(&context, &|_| 1).expect("it fits");

    assert_eq!(
        history(&built.blocks),
        [
            ("Good night of Bob.", CardUse::Entered),
            ("Who is {{char}}? <BOT>", CardUse::None),
        ]
    );
    let report: Vec<(&str, bool, Option<&str>)> = (built.scripts.iter())
        .map(|it| (it.name.as_str(), it.changed, it.error.as_deref()))
        .collect();
    assert_eq!(report[0], ("Day", true, None));
    assert_eq!(report[1], ("Nothing", false, None));
    assert!(
        report[2]
            .2
            .is_some_and(|it| it.starts_with("unterminated group"))
    );
    assert_eq!(context.history[0].text, "Good day.");
}

#[test]
fn the_newest_message_has_the_depth_0() {
    let newest = RegexScript {
        max_depth: Some(0),
        ..script("Newest", "/^/", "! ")
    };

    let built = build(&with_scripts(&[newest]), &|_| 1).expect("it fits");

    let texts: Vec<&str> = history(&built.blocks).iter().map(|it| it.0).collect();
    assert_eq!(texts, ["Good day.", "! Who is {{char}}? <BOT>"]);
}

#[test]
fn a_message_of_which_nothing_is_left_is_not_sent() {
    let context = with_scripts(&[script("Empty", "/Good day./", "")]);

    let built = build(&context, &|_| 1).expect("it fits");

    assert_eq!(history(&built.blocks).len(), 1);
}
