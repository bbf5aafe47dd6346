//! Property tests of patterns: rules that hold for any pattern and text.

use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::Matcher;
use crate::pattern::js_pattern::JsPattern;
use crate::pattern::pattern_text::PatternText;
use crate::pattern::search::StepLimitExceeded;

/// Patterns with every construct, most of them valid.
fn any_pattern() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-cA-Ckséσ猫🐉 ]{1,3}",
        r"\\[bBdDwWsS]",
        r"\[\^?[a-c]-?[a-zé]\]",
        Just(r"\p{Lu}".to_owned()),
        Just(r"(\w)\1".to_owned()),
        Just(r"(?<x>a|b)\k<x>".to_owned()),
        Just(".".to_owned()),
    ];
    part.prop_recursive(4, 24, 4, |inner| {
        let quantifier = prop::sample::select(vec!["*", "+", "?", "{0,3}", "{2}?", "*?", ""]);
        let group = prop::sample::select(vec!["(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|it| it.concat()),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|it| it.join("|")),
            (group, inner, quantifier).prop_map(|(group, it, many)| format!("{group}{it}){many}")),
        ]
    })
}

fn any_flags() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "i", "u", "iu", "iv", "ms", "y"])
}

proptest! {
    #[test]
    fn any_text_is_a_valid_or_an_invalid_pattern(
        body in r"[\\a-c(){}\[\]|?*+.^$<>=!:,&pukxcd0-9🐉-]{0,24}",
        flags in "[imsuvyx]{0,2}",
        text in any::<String>(),
    ) {
        if let Ok(pattern) = JsPattern::compile(&body, &flags) {
            let _ = Matcher::default().find(&pattern, &PatternText::new(&text), &mut 20_000);
        }
    }

    #[test]
    fn a_search_never_exceeds_its_steps_and_its_result_does_not_depend_on_them(
        body in any_pattern(),
        flags in any_flags(),
        text in "[a-cA-Ckséσς猫🐉 \n]{0,30}",
        n_steps in 0_u64..300,
    ) {
        if let Ok(pattern) = JsPattern::compile(&body, flags) {
            let text = PatternText::new(&text);
            let (mut few, mut many) = (n_steps, 500_000);
            let short = Matcher::default().find(&pattern, &text, &mut few);
            let long = Matcher::default().find(&pattern, &text, &mut many);
            if short == Err(StepLimitExceeded) {
                prop_assert_eq!(few, 0);
            } else {
                prop_assert_eq!(short, long);
                prop_assert_eq!(n_steps - few, 500_000 - many);
            }
        }
    }

    #[test]
    fn a_match_contains_the_required_literals(
        body in any_pattern(),
        flags in any_flags(),
        text in "[a-cA-CkKsSſéÉσςΣ猫🐉 \n]{0,30}",
    ) {
        if let Ok(pattern) = JsPattern::compile(&body, flags) {
            let found = Matcher::default().find(&pattern, &PatternText::new(&text), &mut 500_000);
            let lower = text.to_lowercase();
            let has_one = |list: &Vec<String>| list.iter().any(|it| lower.contains(it.as_str()));
            if matches!(found, Ok(Some(_))) {
                prop_assert!(pattern.required_literals.iter().all(has_one), "{:?}", pattern.required_literals);
            }
        }
    }

    #[test]
    fn a_search_that_skips_no_position_has_the_same_result(
        body in any_pattern(),
        flags in any_flags(),
        text in "[a-cA-Ckséσς猫🐉 \n]{0,30}",
    ) {
        if let Ok(mut pattern) = JsPattern::compile(&body, flags) {
            let text = PatternText::new(&text);
            let fast = Matcher::default().find(&pattern, &text, &mut 500_000);
            pattern.first_chars = None;
            let slow = Matcher::default().find(&pattern, &text, &mut 5_000_000);
            prop_assert!(fast.is_err() || fast == slow, "{:?} {:?}", fast, slow);
        }
    }

    #[test]
    fn a_search_that_remembers_nothing_has_the_same_result(
        body in any_pattern(),
        flags in any_flags(),
        text in "[a-c ]{0,30}",
    ) {
        use crate::pattern::program::Instruction;
        if let Ok(mut pattern) = JsPattern::compile(&body, flags) {
            let text = PatternText::new(&text);
            let fast = Matcher::default().find(&pattern, &text, &mut 500_000);
            for instruction in &mut pattern.program.instructions {
                if let Instruction::Run(run) = instruction {
                    run.is_memoized = false;
                }
            }
            let slow = Matcher::default().find(&pattern, &text, &mut 50_000_000);
            prop_assert!(fast.is_err() || slow.is_err() || fast == slow, "{:?} {:?}", fast, slow);
        }
    }
}
