//! The values with which the tests of macros expand their texts.

use std::cell::RefCell;
use std::collections::BTreeMap;

use base::clock::Timestamp;

use crate::macros::bindings::{Bindings, BoundText};
use crate::macros::environment::{LastMessages, MacroEnvironment, MacroSeed, TokenLimits};
use crate::macros::expansion::expand;
use crate::macros::variables::Variables;

pub fn bindings() -> Bindings {
    Bindings {
        character: "Ada".into(),
        user: "Bob".into(),
        persona: "A friend of {{char}}.".into(),
        persona_list: BoundText::Expanded("[Persona of Bob]".into()),
        description: "{{char}} likes {{user}}.".into(),
        personality: "calm".into(),
        scenario: "London".into(),
        example_messages: "<START>\n{{char}}: Hi".into(),
        system_prompt: "Be {{char}}.".into(),
        post_history: "Stay {{char}}.".into(),
        depth_prompt: "{{char}} is tired.".into(),
        creator_notes: "For {{user}}.".into(),
        greetings: vec!["Hi {{user}}.".into(), "*{{char}} nods.*".into()],
        version: "1.2".into(),
        group: "Ada, Cid".into(),
        group_not_muted: "Ada".into(),
        not_character: "Bob, Cid".into(),
        users: "Bob, Eve".into(),
        main_prompt: "Write as {{char}}.".into(),
        preset_main_prompt: "Write for {{user}}.".into(),
        authors_note: BoundText::Expanded("Rain.".into()),
        speaker_note: BoundText::Expanded("Snow.".into()),
        space_note: BoundText::Expanded("Sun.".into()),
        ..Bindings::default()
    }
}

pub fn environment() -> MacroEnvironment {
    let now = Timestamp(1_795_278_245_000); // 2026-11-21T16:24:05Z, a Saturday
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    MacroEnvironment {
        now: Some(now),
        seed: MacroSeed {
            conversation: 7,
            message: 12,
        },
        last_messages: LastMessages {
            message: "{{char}}?".into(),
            user_message: "{{setvar::x::1}}".into(),
            character_message: "Hm.".into(),
            message_id: Some(12),
            first_included_id: Some(3),
            n_swipes: Some(4),
            swipe: Some(2),
            user_spoke_at: Some(Timestamp(now.0 - 600_000)),
            input: "say <BOT>".into(),
        },
        summary: "They met <USER>.".into(),
        token_limits: TokenLimits {
            context: 8_192,
            response: 512,
        },
        model: "demo".into(),
        generation_type: "regenerate",
        variables: RefCell::new(Variables {
            conversation: [
                variable("n", "3"),
                variable("hat", "red"),
                variable("off", "off"),
                variable("blank", ""),
                variable("bag", "[\"rope\",2]"),
                variable("map", "{\"hat\":\"red\"}"),
            ]
            .into(),
            space: [variable("n", "10"), variable("world", "Mars")].into(),
            ..Variables::default()
        }),
        outlets: BTreeMap::from([("weather".into(), "Rain on {{char}}.".into())]),
        ..MacroEnvironment::default()
    }
}

/// Expands a text with these values.
pub fn expanded(text: &str) -> String {
    expand(text, &bindings(), &environment())
}

/// Compares each text with its expansion; each starts from the same variables.
pub fn assert_all(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter(|(text, expected)| expanded(text) != *expected)
        .map(|(text, expected)| format!("{text:?}: {:?}, not {expected:?}", expanded(text)))
        .collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
