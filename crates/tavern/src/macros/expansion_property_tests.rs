//! Property tests: any text is expanded within the limits.

use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq};
use proptest::proptest;
use proptest::sample::select;

use super::{Bindings, expand};
use crate::macros::evaluation::case_fixture::{bindings, environment};
use crate::macros::limits::{MAX_EXPANSIONS, MAX_OUTPUT};
use crate::macros::syntax::unknown_macros;

fn pieces() -> impl Strategy<Value = Vec<&'static str>> {
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
        "{{if 1}}",
        "{{if 0}}",
        "{{else}}",
        "{{/if}}",
        "{{//}}",
        "{{///}}",
        "{{#setvar::x}}",
        "{{/setvar}}",
        "{{reverse}}",
        "{{/reverse}}",
        "random",
        "pick",
        "roll:2d6",
        "setvar",
        "getvar::x",
        "{{.x++}}",
        "{{.x ||= ",
        "$x",
        "trim",
        "noop",
        "\n",
        " ",
        "a",
        "漢",
        "\\",
        "\\{",
        "original",
        "description",
        "{{char}}",
        "1",
        "0",
        "!",
        "#",
        "/",
        "time_UTC+1",
        "é",
        "{{{{",
        "}}}}",
    ];
    vec(select(all), 0..60)
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
        let (first, second) = (environment(), environment());

        let out = expand(&text, &bindings, &first);

        let used = first.macro_use.get();
        if first.failure.take().is_none() {
            prop_assert!(used.n_expansions <= MAX_EXPANSIONS);
            prop_assert!(out.len() <= text.len() + MAX_OUTPUT);
        }
        prop_assert_eq!(out, expand(&text, &bindings, &second));
        prop_assert_eq!(used, second.macro_use.get());
        prop_assert_eq!(first.variables, second.variables);
    }

    #[test]
    fn the_use_of_the_limits_grows_linearly_with_the_text(words in pieces()) {
        let text = words.concat().replace("description", "").replace("original", "");
        let used = |n: usize| {
            let environment = environment();
            expand(&text.repeat(n), &Bindings::default(), &environment);
            let used = environment.macro_use.get();
            used.n_expansions + used.n_bytes
        };

        let (once, much) = (used(1), used(64));

        // A block left open in one copy may be closed in a later one, and a variable may grow.
        prop_assert!(much <= 64 * 64 * (once + text.len()), "{much} for 64 times {once}");
    }

    #[test]
    fn text_without_macros_stays_as_it_is(text in "[a-z漢 :}.<\n{\\\\]{0,200}") {
        let is_plain = !text.contains("{{") && !text.contains("\\{") && !text.contains("\\}");
        if is_plain {
            prop_assert_eq!(expand(&text, &bindings(), &environment()), text);
        }
    }

    #[test]
    fn the_branch_that_is_not_chosen_changes_nothing(words in pieces(), is_true: bool) {
        // Whole macros only: a closing tag in the text would end the branch.
        let inner: String = words.concat().replace(['{', '}', '\\'], "");
        let branch = format!("{{{{setvar::z::1}}}}{{{{.hat = b}}}}{{{{deletevar::n}}}}{inner}");
        let text = match is_true {
            true => format!("{{{{if 1}}}}{{{{else}}}}{branch}{{{{/if}}}}"),
            false => format!("{{{{if 0}}}}{branch}{{{{/if}}}}"),
        };
        let environment = environment();

        let out = expand(&text, &bindings(), &environment);

        prop_assert_eq!(out, "");
        prop_assert!(environment.variables.borrow().changes.is_empty());
    }

    #[test]
    fn every_unknown_name_stands_in_the_text(words in pieces()) {
        let text = words.concat();

        for name in unknown_macros::find(&text) {
            prop_assert!(text.contains(name.trim_start_matches('/')), "{name} in {text}");
        }
    }
}
