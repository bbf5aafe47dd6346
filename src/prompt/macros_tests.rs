//! Macros, one by one and against each other.

use super::MAX_OUTPUT;
use super::Meanings;
use super::Timestamp;
use super::expand;

fn meanings() -> Meanings {
    Meanings {
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
        original: None,
        now: Some(Timestamp(1_795_278_245_000)), // 2026-11-21T16:24:05Z, a Saturday
    }
}

fn expanded(text: &str) -> String {
    expand(text, &meanings())
}

#[test]
fn names_are_put_in_whatever_the_case_of_the_macro() {
    assert_eq!(expanded("{{char}} {{Char}} {{ USER }}"), "Ada Ada Bob");
    assert_eq!(expanded("<USER> <user> <Bot> <CHAR>"), "Bob Bob Ada Ada");
    assert_eq!(
        expanded("{{group}}|{{charIfNotGroup}}|<GROUP>"),
        "Ada, Cid|Ada, Cid|Ada, Cid"
    );
    assert_eq!(expanded("{{groupNotMuted}}|{{notChar}}"), "Ada|Bob, Cid");
}

#[test]
fn fields_are_put_in_with_their_own_macros_expanded() {
    assert_eq!(expanded("{{description}}"), "Ada likes Bob.");
    assert_eq!(
        expanded("{{persona}} {{personality}} {{scenario}}"),
        "A friend of Ada. calm London"
    );
    assert_eq!(expanded("{{mesExamples}}"), "<START>\nAda: Hi");
}

#[test]
fn what_is_not_known_stays_as_it_is_written() {
    for text in [
        "{{random::a::b}}",
        "{{unknown}}",
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
    assert_eq!(expanded("{{random::{{char}}::b}}"), "{{random::Ada::b}}");
    assert_eq!(expanded("{{{char}}}"), "{Ada}");
    assert_eq!(expanded("{{setvar::x::{{user}}}}"), "{{setvar::x::Bob}}");
    assert_eq!(expanded("漢{{char}}🦊{"), "漢Ada🦊{");
}

#[test]
fn names_are_never_read_as_macros() {
    let tricky = Meanings {
        user: "{{char}} <BOT>".into(),
        ..meanings()
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
fn the_original_is_put_in_once() {
    let replacing = Meanings {
        original: Some("Be {{char}}.".into()),
        ..meanings()
    };

    assert_eq!(
        expand("{{original}} Always. {{original}}", &replacing),
        "Be Ada. Always. "
    );
    assert_eq!(expanded("{{original}}"), "{{original}}");
}

#[test]
fn an_original_that_names_itself_ends() {
    let replacing = Meanings {
        original: Some("x{{original}}".into()),
        ..meanings()
    };

    assert_eq!(expand("{{original}}", &replacing), "x");
}

#[test]
fn the_clock_tells_the_moment_it_was_given() {
    assert_eq!(expanded("{{time}}, {{date}}"), "4:24 PM, November 21, 2026");
    assert_eq!(
        expanded("{{weekday}} {{isodate}}T{{isotime}}"),
        "Saturday 2026-11-21T16:24"
    );
    let timeless = Meanings {
        now: None,
        ..meanings()
    };
    assert_eq!(expand("{{time}}", &timeless), "{{time}}");
}

#[test]
fn a_card_that_names_itself_ends() {
    let circle = Meanings {
        description: "a {{personality}}".into(),
        personality: "b {{description}}".into(),
        ..meanings()
    };

    let out = expand("{{description}}", &circle);

    assert!(out.starts_with("a b a b"), "{out}");
    assert!(out.len() < 100);
}

#[test]
fn a_card_that_doubles_itself_is_bounded() {
    let doubling = Meanings {
        description: "{{description}}{{description}}x".into(),
        ..meanings()
    };
    let huge = Meanings {
        description: "y".repeat(100_000),
        ..meanings()
    };

    let many = expand("{{description}}", &doubling);
    let long = expand(&"{{description}}".repeat(1_000), &huge);

    assert!(many.len() <= MAX_OUTPUT, "{}", many.len());
    assert_eq!(long.len(), MAX_OUTPUT);
}

#[test]
fn text_is_cut_between_characters() {
    let wide = Meanings {
        description: "漢".repeat(MAX_OUTPUT),
        ..meanings()
    };

    assert_eq!(expand("{{description}}", &wide).len(), MAX_OUTPUT / 3 * 3);
}

#[test]
fn a_text_full_of_beginnings_costs_little() {
    for beginning in ["{{", "{{//", "<", "{{char", "<user"] {
        let text = beginning.repeat(400_000);

        let out = expanded(&text);

        assert_eq!(out, text[..MAX_OUTPUT]);
    }
}

#[test]
fn a_comment_may_be_a_page_long() {
    assert_eq!(
        expanded(&format!("a{{{{// {}}}}}b", "page ".repeat(1_000))),
        "ab"
    );
}
