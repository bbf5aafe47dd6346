//! Tests of which scripts act on a text.

use super::{ScriptPlacement, ScriptPurpose, ScriptUse};
use crate::regex_scripts::script::RegexScript;

use ScriptPlacement::{AiOutput, Reasoning, UserInput, WorldInfo};
use ScriptPurpose::{Display, Edit, Prompt, Store};

fn script(markdown_only: bool, prompt_only: bool) -> RegexScript {
    RegexScript {
        find_regex: "a".into(),
        placement: vec![1, 2, 5, 6],
        markdown_only,
        prompt_only,
        ..RegexScript::default()
    }
}

fn includes(script: &RegexScript, placement: ScriptPlacement, purpose: ScriptPurpose) -> bool {
    let of_text = ScriptUse {
        placement,
        purpose,
        depth: None,
    };
    of_text.includes(script)
}

#[test]
fn flags_decide_what_is_changed() {
    let cases = [
        (script(false, true), AiOutput, [true, false, false]),
        (script(true, false), AiOutput, [false, true, false]),
        (script(true, true), AiOutput, [true, true, false]),
        (script(false, false), AiOutput, [false, false, true]),
        (script(false, false), Reasoning, [false, false, true]),
        (script(false, true), WorldInfo, [true, false, false]),
        (script(false, false), WorldInfo, [false, false, false]),
        // The stored text of a person never changes.
        (script(false, false), UserInput, [true, true, false]),
        (script(false, true), UserInput, [true, false, false]),
    ];

    for (script, placement, expected) in cases {
        let found = [Prompt, Display, Store].map(|it| includes(&script, placement, it));
        assert_eq!(found, expected, "{script:?} {placement:?}");
    }
}

#[test]
fn only_scripts_that_run_on_edit_change_an_edited_text() {
    let mut script = script(false, false);
    assert!(!includes(&script, AiOutput, Edit));

    script.run_on_edit = true;
    assert!(includes(&script, AiOutput, Edit));
    assert!(!includes(&script, UserInput, Edit));
}

#[test]
fn disabled_scripts_and_those_for_other_texts_have_no_effect() {
    let disabled = RegexScript {
        disabled: true,
        ..script(false, true)
    };
    let other = RegexScript {
        placement: vec![0, 1, 3, 4],
        ..script(false, true)
    };
    let empty = RegexScript {
        find_regex: String::new(),
        ..script(false, true)
    };

    for script in [disabled, other, empty] {
        assert!(!includes(&script, AiOutput, Prompt));
    }
}

#[test]
fn bounds_of_the_depth_include_their_ends() {
    let script = RegexScript {
        min_depth: Some(1),
        max_depth: Some(2),
        ..script(false, true)
    };
    let found = [None, Some(0), Some(1), Some(2), Some(3)].map(|depth| {
        let of_text = ScriptUse {
            placement: AiOutput,
            purpose: Prompt,
            depth,
        };
        of_text.includes(&script)
    });

    assert_eq!(found, [true, false, true, true, false]);
}
