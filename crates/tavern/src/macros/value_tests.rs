//! Tests of the value of every macro, by subject.

use crate::macros::bindings::Bindings;
use crate::macros::environment::{MacroEnvironment, MacroSeed};
use crate::macros::evaluation::case_fixture::{assert_all, bindings, environment, expanded};
use crate::macros::expansion::expand;
use crate::macros::syntax::{names, unknown_macros};

#[test]
fn names() {
    assert_all(&[
        ("{{user}}", "Bob"),
        ("{{char}}", "Ada"),
        ("{{bot}}", "Ada"),
        ("<USER>", "Bob"),
        ("<user>", "Bob"),
        ("<BOT>", "Ada"),
        ("<CHAR>", "Ada"),
        ("<GROUP>", "Ada, Cid"),
        ("<CHARIFNOTGROUP>", "Ada, Cid"),
        ("{{group}}", "Ada, Cid"),
        ("{{charIfNotGroup}}", "Ada, Cid"),
        ("{{groupNotMuted}}", "Ada"),
        ("{{notChar}}", "Bob, Cid"),
        ("{{users}}", "Bob, Eve"),
        ("{{persona_list}}", "[Persona of Bob]"),
    ]);
}

#[test]
fn fields_of_the_card() {
    assert_all(&[
        ("{{description}}", "Ada likes Bob."),
        ("{{charDescription}}", "Ada likes Bob."),
        ("{{personality}}", "calm"),
        ("{{charPersonality}}", "calm"),
        ("{{scenario}}", "London"),
        ("{{charScenario}}", "London"),
        ("{{persona}}", "A friend of Ada."),
        ("{{mesExamples}}", "<START>\nAda: Hi"),
        ("{{mesExamplesRaw}}", "<START>\nAda: Hi"),
        ("{{charPrompt}}", "Be Ada."),
        ("{{charInstruction}}", "Stay Ada."),
        ("{{charJailbreak}}", "Stay Ada."),
        ("{{charDepthPrompt}}", "Ada is tired."),
        ("{{charCreatorNotes}}", "For Bob."),
        ("{{creatorNotes}}", "For Bob."),
        ("{{charFirstMessage}}", "Hi Bob."),
        ("{{greeting}}", "Hi Bob."),
        ("{{greeting::0}}", "Hi Bob."),
        ("{{greeting 1}}", "*Ada nods.*"),
        ("{{charFirstMessage::1}}", "*Ada nods.*"),
        ("{{greeting::2}}", ""),
        ("{{greeting::-1}}", ""),
        ("{{charVersion}}", "1.2"),
        ("{{version}}", "1.2"),
        ("{{char_version}}", "1.2"),
        ("<START>", "<START>"),
    ]);
}

#[test]
fn the_original_is_inserted_once() {
    let replacing = Bindings {
        original: Some("Be {{char}}.".into()),
        ..bindings()
    };
    let cases = [
        ("{{original}} Always. {{original}}", "Be Ada. Always. "),
        ("{{if original}}{{original}}{{/if}}", "Be Ada."),
    ];

    for (text, expected) in cases {
        assert_eq!(expand(text, &replacing, &environment()), expected);
    }
    assert_eq!(expanded("{{original}}"), "{{original}}");
}

#[test]
fn an_original_that_references_itself_terminates() {
    let replacing = Bindings {
        original: Some("x{{original}}".into()),
        ..bindings()
    };

    assert_eq!(expand("{{original}}", &replacing, &environment()), "x");
}

#[test]
fn messages_are_inserted_and_never_expanded() {
    assert_all(&[
        ("{{lastMessage}}", "{{char}}?"),
        ("{{lastChatMessage}}", "{{char}}?"),
        ("{{lastUserMessage}}", "{{setvar::x::1}}"),
        ("{{lastUserMessage}}{{hasvar::x}}", "{{setvar::x::1}}false"),
        ("{{lastCharMessage}}", "Hm."),
        ("{{lastMessageId}}", "12"),
        ("{{firstIncludedMessageId}}", "3"),
        ("{{firstDisplayedMessageId}}", "3"),
        ("{{lastSwipeId}}", "4"),
        ("{{currentSwipeId}}", "2"),
        ("{{allChatRange}}", "0-12"),
        ("{{input}}", "say <BOT>"),
        ("{{idleDuration}}", "10 minutes"),
        ("{{idle_duration}}", "10 minutes"),
        ("{{summary}}", "They met <USER>."),
    ]);
}

#[test]
fn values_of_a_conversation_without_messages_are_empty() {
    let nothing = MacroEnvironment::default();
    let text = "{{lastMessage}}{{lastMessageId}}{{firstIncludedMessageId}}{{lastSwipeId}}\
        {{currentSwipeId}}{{allChatRange}}{{input}}{{summary}}|{{idleDuration}}";

    assert_eq!(expand(text, &bindings(), &nothing), "|a few seconds");
}

#[test]
fn prompts_and_state() {
    assert_all(&[
        ("{{systemPrompt}}", "Write as Ada."),
        ("{{defaultSystemPrompt}}", "Write for Bob."),
        ("{{instructSystem}}", "Write for Bob."),
        ("{{instructSystemPrompt}}", "Write for Bob."),
        ("{{authorsNote}}", "Rain."),
        ("{{charAuthorsNote}}", "Snow."),
        ("{{defaultAuthorsNote}}", "Sun."),
        ("{{model}}", "demo"),
        ("{{maxPrompt}}", "7680"),
        ("{{maxPromptTokens}}", "7680"),
        ("{{maxContext}}", "8192"),
        ("{{maxContextTokens}}", "8192"),
        ("{{maxResponse}}", "512"),
        ("{{maxResponseTokens}}", "512"),
        ("{{lastGenerationType}}", "regenerate"),
        ("{{isMobile}}", "false"),
        ("{{hasExtension::tts}}", "false"),
        ("{{hasExtension tts}}", "false"),
    ]);
}

#[test]
fn the_macros_of_text_completion_templates_are_empty() {
    assert_all(&[
        ("{{exampleSeparator}}", ""),
        ("{{chatSeparator}}", ""),
        ("{{chatStart}}", ""),
        ("{{instructUserPrefix}}", ""),
        ("{{instructInput}}", ""),
        ("{{instructUserSuffix}}", ""),
        ("{{instructAssistantPrefix}}", ""),
        ("{{instructOutput}}", ""),
        ("{{instructAssistantSuffix}}", ""),
        ("{{instructSeparator}}", ""),
        ("{{instructSystemPrefix}}", ""),
        ("{{instructSystemSuffix}}", ""),
        ("{{instructFirstAssistantPrefix}}", ""),
        ("{{instructFirstOutputPrefix}}", ""),
        ("{{instructLastAssistantPrefix}}", ""),
        ("{{instructLastOutputPrefix}}", ""),
        ("{{instructFirstUserPrefix}}", ""),
        ("{{instructFirstInput}}", ""),
        ("{{instructLastUserPrefix}}", ""),
        ("{{instructLastInput}}", ""),
        ("{{instructStoryStringPrefix}}", ""),
        ("{{instructStoryStringSuffix}}", ""),
        ("{{instructStop}}", ""),
        ("{{instructUserFiller}}", ""),
        ("{{instructSystemInstructionPrefix}}", ""),
    ]);
}

#[test]
fn times_and_dates() {
    assert_all(&[
        ("{{time}}", "4:24 PM"),
        ("{{date}}", "November 21, 2026"),
        ("{{weekday}}", "Saturday"),
        ("{{isotime}}", "16:24"),
        ("{{isodate}}", "2026-11-21"),
        ("{{time_UTC+2}}", "6:24 PM"),
        ("{{time_utc-1:30}}", "2:54 PM"),
        ("{{time::UTC-3}}", "1:24 PM"),
        ("{{time UTC+0}}", "4:24 PM"),
        ("{{time::CET}}", "{{time::CET}}"),
        ("{{time_UTC}}", "{{time_UTC}}"),
        ("{{datetimeformat::DD.MM.}}", "21.11."),
        ("{{datetimeformat YYYY-MM-DD HH:mm}}", "2026-11-21 16:24"),
        ("{{datetimeformat::dddd [at] h a}}", "Saturday at 4 pm"),
        ("{{datetimeformat::LL}}", "November 21, 2026"),
        ("{{datetimeformat}}", "{{datetimeformat}}"),
        ("{{timeDiff::2026-11-22::2026-11-21}}", "in a day"),
        (
            "{{timeDiff::2026-11-21 10:00::2026-11-21 13:00}}",
            "3 hours ago",
        ),
        (
            "{{timeDiff::{{isodate}} {{time}}::2026/11/21 16:00:00}}",
            "in 24 minutes",
        ),
        ("{{timeDiff::now::then}}", "{{timeDiff::now::then}}"),
    ]);
    for text in ["{{time}}", "{{time_UTC+2}}", "{{datetimeformat::YYYY}}"] {
        assert_eq!(
            expand(text, &bindings(), &MacroEnvironment::default()),
            text
        );
    }
}

#[test]
fn draws_with_one_result() {
    assert_all(&[
        ("{{random::a}}", "a"),
        ("{{random:a}}", "a"),
        ("{{random: a }}", "a"),
        ("{{random:a,a}}", "a"),
        ("{{random::a::a::a}}", "a"),
        ("{{random::{{char}}::{{char}}}}", "Ada"),
        ("{{random:x\\,y}}", "x,y"),
        ("{{random::x,y::x,y}}", "x,y"),
        ("{{pick::b}}", "b"),
        ("{{pick:b,b}}", "b"),
        ("{{pick::b::b}}", "b"),
        ("{{roll::1d1}}", "1"),
        ("{{roll:1d1}}", "1"),
        ("{{roll 1d1}}", "1"),
        ("{{roll d1}}", "1"),
        ("{{roll 1}}", "1"),
        ("{{roll::3d1+4}}", "7"),
        ("{{roll::3D1-4}}", "-1"),
        ("{{roll:nonsense}}", ""),
        ("{{roll}}", "{{roll}}"),
        ("{{random}}", "{{random}}"),
        ("{{pick}}", "{{pick}}"),
    ]);
}

#[test]
fn a_draw_depends_on_conversation_message_and_position() {
    let text = "{{random::a::b::c::d}}{{random: a, b, c, d}}{{roll:1d1000}}";
    let drawn = |text: &str, message| {
        let environment = MacroEnvironment {
            seed: MacroSeed {
                conversation: 7,
                message,
            },
            ..environment()
        };
        expand(text, &bindings(), &environment)
    };

    let all: Vec<String> = (0..40).map(|it| drawn(text, it)).collect();
    let twice = drawn("{{roll 1000000}} {{roll 1000000}}", 1);
    let (first, second) = twice.split_once(' ').expect("two draws");

    assert_eq!(all[3], drawn(text, 3));
    assert!(all.iter().any(|it| *it != all[0]), "{all:?}");
    assert_ne!(first, second);
}

#[test]
fn a_draw_in_a_text_that_is_inserted_twice_has_two_results() {
    let drawing = Bindings {
        description: "{{roll 1000000}}".into(),
        ..bindings()
    };

    let twice = expand("{{description}} {{description}}", &drawing, &environment());

    let (first, second) = twice.split_once(' ').expect("two draws");
    assert_ne!(first, second);
}

#[test]
fn a_draw_does_not_depend_on_the_branch_that_is_chosen_before_it() {
    let text = "{{if {{getvar::hat}}}}{{random::a::b}}{{/if}}|{{roll 1000000}}";
    let without_hat = environment();
    without_hat.variables.borrow_mut().conversation.clear();

    let (with, without) = (expanded(text), expand(text, &bindings(), &without_hat));

    let last = |it: &str| it.split_once('|').map(|(_, last)| last.to_owned());
    assert_eq!(last(&with), last(&without));
    assert!(without.starts_with('|'));
}

#[test]
fn a_pick_stays_the_same_in_a_conversation() {
    let text = "{{pick::a::b::c::d::e::f::g::h}}{{pick:a,b,c,d,e,f,g,h}}";
    let picked = |conversation, message| {
        let environment = MacroEnvironment {
            seed: MacroSeed {
                conversation,
                message,
            },
            ..environment()
        };
        expand(text, &bindings(), &environment)
    };

    let in_one: Vec<String> = (0..9).map(|it| picked(1, it)).collect();
    let in_many: Vec<String> = (0..9).map(|it| picked(it, 1)).collect();

    assert!(in_one.iter().all(|it| *it == in_one[0]));
    assert!(in_many.iter().any(|it| *it != in_many[0]));
}

#[test]
fn texts() {
    assert_all(&[
        ("a{{newline}}b", "a\nb"),
        ("a{{newline::3}}b", "a\n\n\nb"),
        ("a{{newline 0}}b", "ab"),
        ("a{{newline::x}}b", "a{{newline::x}}b"),
        ("a{{space}}b", "a b"),
        ("a{{space::3}}b", "a   b"),
        ("a{{noop}}b", "ab"),
        ("{{reverse:abc}}", "cba"),
        ("{{reverse::漢字}}", "字漢"),
        ("{{reverse Hello World}}", "dlroW olleH"),
        ("a\n\n{{trim}}\n\nb", "ab"),
        ("{{trim}}\r\na\r\n{{TRIM}}", "a"),
        ("a {{trim}} b", "a  b"),
        ("a\n{{noop}}{{trim}}\nb", "a\nb"),
        ("a\n{{trim}}{{noop}}\nb", "a\nb"),
        ("a\n{{setvar::x::1}}\n{{trim}}b", "ab"),
        ("{{trim:: a }}", "a"),
        ("a{{// a note }}b", "ab"),
        ("a{{//note}}b", "ab"),
        ("a{{comment: {{char}} }}b", "ab"),
        ("a{{comment::x::y}}b", "ab"),
        ("a{{hidden_key:x}}b", "ab"),
        ("a{{banned \"x\"}}b", "ab"),
        ("a{{banned::x}}b", "ab"),
        ("{{outlet::weather}}", "Rain on {{char}}."),
        ("{{outlet weather}}", "Rain on {{char}}."),
        ("{{outlet::none}}", ""),
    ]);
    assert_eq!(expanded("{{space::5000}}").len(), 1_000);
}

#[test]
fn every_macro_has_a_value_for_a_possible_number_of_arguments() {
    let original = Bindings {
        original: Some("x".into()),
        ..bindings()
    };
    for name in names::all() {
        let spec = names::find(name).expect("it is listed");
        let args = match name {
            "timediff" => "::2026-11-21::2026-11-20".to_owned(),
            "time_utc" => "+1".to_owned(),
            _ => "::1".repeat(spec.min_args),
        };
        let text = format!("{{{{{name}{args}}}}}");

        let out = expand(&text, &original, &environment());

        assert_ne!(out, text);
        assert!(syntax_is_known(&text), "{text}");
    }
}

fn syntax_is_known(text: &str) -> bool {
    unknown_macros::find(text).is_empty()
}
