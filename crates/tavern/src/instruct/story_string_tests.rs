//! Tests of the parser and the renderer of story strings.

use proptest::prelude::prop_assert_eq;
use proptest::proptest;

use super::{StoryField, StoryString, StoryStringError, StoryValues};

fn render(text: &str, values: &[(StoryField, &str)]) -> String {
    let values = values.iter().map(|(field, it)| (*field, (*it).to_owned()));
    StoryString::parse(text).unwrap().render(&values.collect())
}

#[test]
fn a_condition_depends_on_whether_its_value_is_empty() {
    let text =
        "{{#if system}}S: {{system}}{{else}}none{{/if}}|{{#unless persona}}no one{{/unless}}";

    assert_eq!(render(text, &[]), "none|no one");
    let both = [(StoryField::System, "Write."), (StoryField::Persona, "Ann")];
    assert_eq!(render(text, &both), "S: Write.|");
}

#[test]
fn conditions_may_contain_each_other() {
    let text = "{{#if char}}{{#if user}}{{user}} and {{char}}{{else}}{{char}}{{/if}}{{/if}}.";

    assert_eq!(render(text, &[(StoryField::Char, "Bran")]), "Bran.");
    let both = [(StoryField::Char, "Bran"), (StoryField::User, "Ann")];
    assert_eq!(render(text, &both), "Ann and Bran.");
    assert_eq!(render(text, &[]), ".");
}

#[test]
fn every_name_of_a_value_is_known() {
    for (name, field) in [
        ("system", StoryField::System),
        ("wiBefore", StoryField::WiBefore),
        ("loreBefore", StoryField::WiBefore),
        ("wiAfter", StoryField::WiAfter),
        ("loreAfter", StoryField::WiAfter),
        ("description", StoryField::Description),
        ("personality", StoryField::Personality),
        ("scenario", StoryField::Scenario),
        ("persona", StoryField::Persona),
        ("mesExamples", StoryField::MesExamples),
        ("anchorBefore", StoryField::AnchorBefore),
        ("anchorAfter", StoryField::AnchorAfter),
        ("char", StoryField::Char),
        ("user", StoryField::User),
    ] {
        let text = format!("a {{{{ {name} }}}} b {{{{{{{name}}}}}}}");
        assert_eq!(render(&text, &[(field, "X")]), "a X b X", "{name}");
    }
}

#[test]
fn trim_removes_line_breaks_around_it() {
    let text = "{{system}}\n\n{{trim}}\n{{#if persona}}\n{{/if}}\n{{char}}";

    let values = [(StoryField::System, "S"), (StoryField::Char, "C")];
    assert_eq!(render(text, &values), "SC");
}

#[test]
fn other_tags_are_text() {
    let text = "{{random::a,b}} {{setvar::x::{{description}}}} {{! a comment }}{{ {";

    assert_eq!(
        render(text, &[(StoryField::Description, "D")]),
        "{{random::a,b}} {{setvar::x::{{description}}}} {{ {"
    );
}

#[test]
fn an_unknown_name_in_a_condition_has_no_value() {
    assert_eq!(render("{{#if vectors}}a{{else}}b{{/if}}", &[]), "b");
}

#[test]
fn what_looks_like_a_tag_in_a_value_is_text() {
    let values = [(StoryField::Description, "{{system}}{{#if x}}")];

    assert_eq!(render("{{description}}", &values), "{{system}}{{#if x}}");
}

#[test]
fn an_invalid_condition_is_refused() {
    for (text, error) in [
        ("{{#if system}}", StoryStringError::Unclosed),
        ("{{#if system}}{{/unless}}", StoryStringError::WrongClosing),
        ("{{/if}}", StoryStringError::WrongClosing),
        ("{{else}}", StoryStringError::UnexpectedElse),
        (
            "{{#if system}}{{else}}{{else}}{{/if}}",
            StoryStringError::UnexpectedElse,
        ),
        ("{{#each x}}{{/each}}", StoryStringError::UnknownBlock),
        ("{{#if}}{{/if}}", StoryStringError::UnknownBlock),
        ("{{#if (eq a b)}}{{/if}}", StoryStringError::UnknownBlock),
        (&"{{#if system}}".repeat(17), StoryStringError::TooDeep),
    ] {
        assert_eq!(StoryString::parse(text), Err(error), "{text}");
    }
}

proptest! {
    #[test]
    fn text_without_braces_stays_as_it_is(text in "[^{}]*") {
        prop_assert_eq!(render(&text, &[]), text);
    }

    #[test]
    fn the_parsed_form_survives_json(text in "(\\{\\{#if system\\}\\}|\\{\\{/if\\}\\}|\\{\\{else\\}\\}|\\{\\{trim\\}\\}|\\{\\{user\\}\\}|[a-z\n]){0,20}") {
        if let Ok(story) = StoryString::parse(&text) {
            let json = serde_json::to_value(&story).unwrap();
            prop_assert_eq!(serde_json::from_value::<StoryString>(json).unwrap(), story.clone());
            let values = StoryValues::from([(StoryField::User, "Ann".to_owned())]);
            let same = story.map_texts(&str::to_owned);
            prop_assert_eq!(same.render(&values), story.render(&values));
        }
    }
}
