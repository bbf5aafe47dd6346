//! Property tests: any text is expanded within the limits.

use proptest::prelude::{prop_assert, prop_assert_eq};
use proptest::proptest;
use proptest::sample::select;

use super::tests::{bindings, environment};
use super::{Bindings, MAX_OUTPUT, MAX_STEPS, expand_counted};

fn pieces() -> impl proptest::strategy::Strategy<Value = Vec<&'static str>> {
    let all = vec![
        "{{",
        "}}",
        "{",
        "}",
        "::",
        ":",
        "//",
        "<",
        ">",
        "user",
        "char",
        "<BOT>",
        "{{if ",
        "{{else}}",
        "{{/if}}",
        "random",
        "pick",
        "roll:2d6",
        "setvar",
        "getvar::x",
        "trim",
        "\n",
        " ",
        "a",
        "漢",
        "original",
        "description",
        "{{char}}",
        "1",
        "0",
        "!",
        "time_UTC+1",
        "é",
        "{{{{",
        "}}}}",
    ];
    proptest::collection::vec(select(all), 0..60)
}

proptest! {
    #[test]
    fn every_text_is_expanded_deterministically_and_within_the_limits(words in pieces()) {
        let text = words.concat();
        let bindings = Bindings {
            description: text.clone().into(),
            original: Some(text.clone()),
            ..bindings()
        };

        let (out, steps, work) = expand_counted(&text, &bindings, &environment());

        prop_assert!(out.len() <= MAX_OUTPUT);
        prop_assert!(steps <= MAX_STEPS);
        prop_assert!(work <= 8 * 1024 * 1024);
        prop_assert_eq!(out, expand_counted(&text, &bindings, &environment()).0);
    }

    #[test]
    fn work_grows_at_most_linearly_with_the_text(words in pieces()) {
        let text = words.concat().replace("description", "").replace("original", "");
        let work = |n: usize| {
            let (_, steps, work) = expand_counted(&text.repeat(n), &Bindings::default(), &environment());
            steps + work
        };

        let (once, much) = (work(1), work(64));

        // A block left open in one copy may be closed in a later one: then it is copied once per
        // level.
        prop_assert!(much <= 64 * (18 * once + 64), "{much} for 64 times {once}");
    }

    #[test]
    fn text_without_macros_stays_as_it_is(text in "[a-z漢 :}.<>\n]{0,200}") {
        let is_plain = !text.contains('<') || !text.contains('>');
        if is_plain {
            prop_assert_eq!(expand_counted(&text, &bindings(), &environment()).0, text);
        }
    }
}
