//! Tests of the expansion of macros, alone and combined.

use std::collections::BTreeMap;

use base::clock::Timestamp;

use super::{Bindings, MAX_OUTPUT, MAX_STEPS, MacroEnvironment};
use crate::macros::environment::{LastMessages, MacroSeed};
use crate::macros::variables::VariableScope;

fn expand(text: &str, bindings: &Bindings) -> String {
    super::expand(text, bindings, &environment())
}

/// Expands a text in this environment.
fn expand_in(text: &str, environment: &MacroEnvironment) -> String {
    super::expand(text, &bindings(), environment)
}

pub fn environment() -> MacroEnvironment {
    MacroEnvironment {
        now: Some(Timestamp(1_795_278_245_000)), // 2026-11-21T16:24:05Z, a Saturday
        ..MacroEnvironment::default()
    }
}

pub fn bindings() -> Bindings {
    Bindings {
        character: "Ada".into(),
        user: "Bob".into(),
        persona: "A friend of {{char}}.".into(),
        description: "{{char}} likes {{user}}.".into(),
        personality: "calm".into(),
        scenario: "London".into(),
        example_messages: "<START>\n{{char}}: Hi".into(),
        group: "Ada, Cid".into(),
        group_not_muted: "Ada".into(),
        not_character: "Bob, Cid".into(),
        users: "Bob, Eve".into(),
        ..Bindings::default()
    }
}

fn expanded(text: &str) -> String {
    expand(text, &bindings())
}

#[test]
fn name_macros_are_replaced_in_any_letter_case() {
    assert_eq!(expanded("{{char}} {{Char}} {{ USER }}"), "Ada Ada Bob");
    assert_eq!(expanded("<USER> <user> <Bot> <CHAR>"), "Bob Bob Ada Ada");
    assert_eq!(
        expanded("{{group}}|{{charIfNotGroup}}|<GROUP>"),
        "Ada, Cid|Ada, Cid|Ada, Cid"
    );
    assert_eq!(expanded("{{groupNotMuted}}|{{notChar}}"), "Ada|Bob, Cid");
}

#[test]
fn fields_are_inserted_with_their_own_macros_expanded() {
    assert_eq!(expanded("{{description}}"), "Ada likes Bob.");
    assert_eq!(
        expanded("{{persona}} {{personality}} {{scenario}}"),
        "A friend of Ada. calm London"
    );
    assert_eq!(expanded("{{mesExamples}}"), "<START>\nAda: Hi");
}

#[test]
fn unknown_macros_are_unchanged() {
    for text in [
        "{{unknown}}",
        "{{unknown::a::b}}",
        "{{user::x}}",
        "{{}}",
        "{{ }}",
        "{{char",
        "char}}",
        "{",
        "<",
        "<div>",
        "a < b > c",
        "<user",
    ] {
        assert_eq!(expanded(text), text);
    }
    assert_eq!(expanded("{{other::{{char}}::b}}"), "{{other::Ada::b}}");
    assert_eq!(expanded("{{char {{user}}"), "{{char Bob");
    assert_eq!(expanded("{{{char}}}"), "{Ada}");
    assert_eq!(
        expanded("{{setthing::x::{{user}}}}"),
        "{{setthing::x::Bob}}"
    );
    assert_eq!(expanded("漢{{char}}🦊{"), "漢Ada🦊{");
}

#[test]
fn macros_in_names_are_not_expanded() {
    let tricky = Bindings {
        user: "{{char}} <BOT>".into(),
        ..bindings()
    };

    assert_eq!(expand("{{user}}", &tricky), "{{char}} <BOT>");
}

#[test]
fn layout_macros_shape_the_text() {
    assert_eq!(expanded("a{{newline}}b{{noop}}c"), "a\nbc");
    assert_eq!(expanded("a\n\n{{trim}}\n\nb"), "ab");
    assert_eq!(expanded("{{trim}}\r\na\r\n{{TRIM}}"), "a");
    assert_eq!(expanded("a {{trim}} b"), "a  b");
    assert_eq!(expanded("a{{// a {note} of {{mine }}b"), "ab");
}

#[test]
fn the_original_is_inserted_once() {
    let replacing = Bindings {
        original: Some("Be {{char}}.".into()),
        ..bindings()
    };

    assert_eq!(
        expand("{{original}} Always. {{original}}", &replacing),
        "Be Ada. Always. "
    );
    assert_eq!(expanded("{{original}}"), "{{original}}");
}

#[test]
fn an_original_that_references_itself_terminates() {
    let replacing = Bindings {
        original: Some("x{{original}}".into()),
        ..bindings()
    };

    assert_eq!(expand("{{original}}", &replacing), "x");
}

#[test]
fn time_macros_use_the_given_time() {
    assert_eq!(expanded("{{time}}, {{date}}"), "4:24 PM, November 21, 2026");
    assert_eq!(
        expanded("{{weekday}} {{isodate}}T{{isotime}}"),
        "Saturday 2026-11-21T16:24"
    );
    assert_eq!(
        expanded("{{time_UTC+2}} {{time_utc-1:30}}"),
        "6:24 PM 2:54 PM"
    );
    assert_eq!(expanded("{{time::UTC-3}}"), "1:24 PM");
    assert_eq!(
        expanded("{{datetimeformat YYYY-MM-DD HH:mm}}"),
        "2026-11-21 16:24"
    );
    assert_eq!(expanded("{{datetimeformat::DD.MM.}}"), "21.11.");
    for text in ["{{time}}", "{{time_UTC+2}}", "{{datetimeformat::YYYY}}"] {
        assert_eq!(expand_in(text, &MacroEnvironment::default()), text);
    }
}

#[test]
fn a_card_that_references_itself_terminates() {
    let recursive = Bindings {
        description: "a {{personality}}".into(),
        personality: "b {{description}}".into(),
        ..bindings()
    };

    let out = expand("{{description}}", &recursive);

    assert!(out.starts_with("a b a b"), "{out}");
    assert!(out.len() < 100);
}

#[test]
fn a_card_that_references_itself_twice_is_bounded() {
    let doubling = Bindings {
        description: "{{description}}{{description}}x".into(),
        ..bindings()
    };
    let huge = Bindings {
        description: "y".repeat(100_000).into(),
        ..bindings()
    };

    let many = expand("{{description}}", &doubling);
    let long = expand(&"{{description}}".repeat(1_000), &huge);

    assert!(many.len() <= MAX_OUTPUT, "{}", many.len());
    assert_eq!(long.len(), MAX_OUTPUT);
}

#[test]
fn an_inner_macro_can_use_the_last_step() {
    let nearly_all = "{{noop}}".repeat(MAX_STEPS - 1);
    let text = nearly_all + "{{reverse::{{char}}}}{{char}}";

    let (out, n_steps, _) = super::expand_counted(&text, &bindings(), &environment());

    assert_eq!((out.as_str(), n_steps), ("adA{{char}}", MAX_STEPS));
}

#[test]
fn text_is_cut_between_characters() {
    let wide = Bindings {
        description: "漢".repeat(MAX_OUTPUT).into(),
        ..bindings()
    };

    assert_eq!(expand("{{description}}", &wide).len(), MAX_OUTPUT / 3 * 3);
}

#[test]
fn a_comment_may_be_a_page_long() {
    assert_eq!(
        expanded(&format!("a{{{{// {}}}}}b", "page ".repeat(1_000))),
        "ab"
    );
}

#[test]
fn a_random_choice_is_the_same_for_one_message_and_differs_between_messages() {
    let text = "{{random::a::b::c::d}}{{random: a, b, c, d}}{{roll:1d1000}} {{roll 1000}}";
    let environment_of = |message| MacroEnvironment {
        seed: MacroSeed {
            conversation: 7,
            message,
        },
        ..environment()
    };

    let all: Vec<String> = (0..40)
        .map(|it| expand_in(text, &environment_of(it)))
        .collect();

    assert_eq!(all[3], expand_in(text, &environment_of(3)));
    assert!(all.iter().any(|it| *it != all[0]), "{all:?}");
    assert!(!all[0].contains("{{"));
}

#[test]
fn a_pick_stays_the_same_for_a_conversation() {
    let text = "{{pick::a::b::c::d::e::f::g::h}}{{pick:a,b,c,d,e,f,g,h}}";
    let environment_of = |conversation, message| MacroEnvironment {
        seed: MacroSeed {
            conversation,
            message,
        },
        ..environment()
    };

    let in_one: Vec<String> = (0..9)
        .map(|it| expand_in(text, &environment_of(1, it)))
        .collect();
    let in_many: Vec<String> = (0..9)
        .map(|it| expand_in(text, &environment_of(it, 1)))
        .collect();

    assert!(in_one.iter().all(|it| *it == in_one[0]));
    assert!(in_many.iter().any(|it| *it != in_many[0]));
}

#[test]
fn a_random_choice_is_one_of_the_options() {
    for n in 0..20 {
        let environment = MacroEnvironment {
            seed: MacroSeed {
                conversation: n,
                message: n,
            },
            ..environment()
        };
        let drawn = expand_in(
            "{{random::{{char}}::{{user}}}} {{pick: x\\,y , z}}",
            &environment,
        );
        let (name, item) = drawn.split_once(' ').expect("two draws");
        assert!(["Ada", "Bob"].contains(&name), "{drawn}");
        assert!(["x,y", "z"].contains(&item), "{drawn}");
    }
    assert_eq!(expanded("{{roll:nonsense}}"), "{{roll:nonsense}}");
    assert_eq!(expanded("{{roll}} {{random}}"), "{{roll}} {{random}}");
}

#[test]
fn variables_are_set_and_read_in_the_order_of_the_text() {
    let environment = environment();

    let out = expand_in(
        "{{getvar::x}}|{{setvar::x::{{char}}}}{{getvar::x}}|{{addvar::x::!}}{{GETVAR::x}}|\
         {{incvar::n}}{{incvar::n}}{{decvar::n}}|{{setglobalvar::x::all}}{{getglobalvar::x}}",
        &environment,
    );

    assert_eq!(out, "|Ada|Ada!|121|all");
    let variables = environment.variables.borrow();
    assert_eq!(variables.get(VariableScope::Conversation, "x"), "Ada!");
    assert_eq!(variables.get(VariableScope::Space, "x"), "all");
    assert_eq!(variables.changes.conversation.len(), 2);
}

#[test]
fn variables_can_be_discarded() {
    let environment = environment();

    let out =
        environment.without_variables(|| expand_in("{{setvar::x::1}}{{getvar::x}}", &environment));

    assert_eq!(out, "1");
    assert!(environment.variables.borrow().changes.is_empty());
    assert_eq!(expand_in("{{getvar::x}}", &environment), "");
}

#[test]
fn a_condition_chooses_one_side_and_runs_only_that() {
    let environment = environment();
    let cases = [
        ("{{if 1}}a{{else}}b{{/if}}", "a"),
        ("{{if 0}}a{{else}}b{{/if}}", "b"),
        ("{{if}}a{{/if}}", ""),
        ("{{if::no}}a{{/if}}c", "c"),
        ("{{IF {{getvar::x}}}}a{{ELSE}}{{char}}{{/IF}}", "Ada"),
        ("{{if description}}\n a \n{{/if}}", "a"),
        ("{{if !scenario}}a{{else}}b{{/if}}", "b"),
        ("{{if 1}}{{if 0}}a{{else}}b{{/if}}{{else}}c{{/if}}", "b"),
        ("{{if 0}}{{setvar::y::1}}{{/if}}{{getvar::y}}", ""),
        ("{{if 1}}a", "{{if 1}}a"),
        ("{{if 1}}a{{else}}{{char}}", "{{if 1}}a{{else}}Ada"),
        ("a{{else}}b{{/if}}", "a{{else}}b{{/if}}"),
        ("{{random::{{if 1}}x{{/if}}}}", "x"),
    ];
    for (text, out) in cases {
        assert_eq!(expand_in(text, &environment), out, "{text}");
    }
}

#[test]
fn a_condition_beyond_a_limit_is_left_as_it_is() {
    let late = "{{if {{char}}}}a <USER>{{else}}{{if 1}}b{{/if}}{{/if}}c";
    let steps = "{{noop}}".repeat(MAX_STEPS);
    assert_eq!(expanded(&(steps + late)), late);

    let meanings = Bindings {
        description: "a{{if 1}}b{{/if}}{{description}}".into(),
        ..bindings()
    };
    let out = expand("{{description}}", &meanings);
    assert_eq!(out, "ab".repeat(15) + "a{{if 1}}b{{/if}}{{description}}");
}

#[test]
fn messages_and_the_summary_are_inserted_and_never_expanded() {
    let last_messages = LastMessages {
        message: "{{char}}?".into(),
        user_message: "{{setvar::x::1}}".into(),
        character_message: "Hm.".into(),
        message_id: Some(12),
        user_spoke_at: Some(Timestamp(1_795_278_245_000 - 600_000)),
        input: "say <BOT>".into(),
    };
    let environment = MacroEnvironment {
        last_messages,
        summary: "They <USER> {{setvar::y::1}}.".into(),
        max_prompt_tokens: 7_680,
        model: "demo".into(),
        ..environment()
    };

    let out = expand_in(
        "{{lastMessage}} {{lastUserMessage}} {{lastCharMessage}} {{lastMessageId}} {{input}} \
         {{summary}} {{idle_duration}} {{maxPrompt}} {{model}} {{users}}",
        &environment,
    );

    assert_eq!(
        out,
        "{{char}}? {{setvar::x::1}} Hm. 12 say <BOT> They <USER> {{setvar::y::1}}. 10 minutes 7680 demo Bob, Eve"
    );
    assert!(environment.variables.borrow().changes.is_empty());
}

#[test]
fn simple_macros_work() {
    let environment = MacroEnvironment {
        outlets: BTreeMap::from([("weather".into(), "Rain on {{char}}.".into())]),
        ..environment()
    };
    let cases = [
        ("{{reverse:abc}}{{reverse::漢字}}", "cba字漢"),
        (
            "a{{comment: {{char}} }}b{{hidden_key:x}}{{banned \"x\"}}",
            "ab",
        ),
        ("{{outlet::weather}}|{{outlet::none}}", "Rain on {{char}}.|"),
    ];
    for (text, out) in cases {
        assert_eq!(expand_in(text, &environment), out, "{text}");
    }
}
