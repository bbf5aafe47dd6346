//! Property tests of the engine: rules that hold for any lorebook, text and settings.

use std::collections::HashSet;

use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use serde_json::{Value, json};

use super::engine_fixture::{EngineFixture, fixture};

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[abc]{1,2}",
        "/[abc(|)*+?.\\[\\]{}^$1\\\\]{1,6}/[gimsuy]{0,2}",
        "[a-cäß猫 {}<>@]{0,4}",
        Just("/(?=a)(b|c)\\1/".to_owned()),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3_i64..9).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        "[a-c,0-9]{0,4}".prop_map(Value::from),
        Just(Value::Null),
        Just(json!([])),
    ]
}

fn any_extensions() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "position",
        "exclude_recursion",
        "prevent_recursion",
        "delay_until_recursion",
        "probability",
        "useProbability",
        "depth",
        "selectiveLogic",
        "group",
        "group_override",
        "group_weight",
        "scan_depth",
        "match_whole_words",
        "use_group_scoring",
        "role",
        "sticky",
        "cooldown",
        "delay",
        "ignore_budget",
        "triggers",
        "character_filter",
        "match_scenario",
    ]);
    prop::collection::hash_map(name, any_value(), 0..5)
        .prop_map(|it| it.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

fn any_entry() -> impl Strategy<Value = Value> {
    let content = prop_oneof![
        "[a-c ]{0,12}",
        "(@@@?(depth|role|activate|scan_depth|exclude_keys|x) ?[a-c0-9-]{0,3}\n){0,3}[a-c ]{0,6}",
    ];
    (
        prop::collection::vec(any_key(), 0..4),
        prop::collection::vec(any_key(), 0..3),
        content,
        any_extensions(),
        prop::option::of(any_value()),
        prop::option::of(any_value()),
        any::<bool>(),
    )
        .prop_map(
            |(keys, secondary, content, extensions, priority, constant, use_regex)| {
                json!({"keys": keys, "secondary_keys": secondary, "content": content,
                "extensions": extensions, "priority": priority, "constant": constant,
                "use_regex": use_regex})
            },
        )
}

/// Builds a scan in any state: `entries` and the messages may be empty.
fn fixture_of<'a>(
    lines: &'a [String],
    entries: &[Value],
    numbers: [usize; 6],
) -> EngineFixture<'a> {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut scan = fixture(&lines, json!(entries));
    let [depth, budget, steps, min, flags, seed] = numbers;
    scan.settings.scan_depth = depth;
    scan.settings.budget = budget as i64;
    scan.settings.max_steps = steps;
    scan.settings.min_activations = min;
    scan.settings.recursive = flags & 1 != 0;
    scan.settings.whole_words = flags & 2 != 0;
    scan.settings.ascii_words = flags & 4 != 0;
    scan.settings.group_scoring = flags & 8 != 0;
    scan.seed = seed as u64;
    scan
}

proptest! {
    #[test]
    fn any_lorebook_and_text_give_a_repeatable_result_within_the_budget(
        lines in prop::collection::vec("[a-cäß猫 \n]{0,12}", 0..5),
        entries in prop::collection::vec(any_entry(), 0..8),
        numbers in (0_usize..6, 0_usize..30, 0_usize..14, 0_usize..5, 0_usize..16, any::<usize>()),
    ) {
        let (a, b, c, d, e, f) = numbers;
        let mut scan = fixture_of(&lines, &entries, [a, b, c, d, e, f]);
        let outcome = scan.run();

        prop_assert_eq!(&outcome, &scan.run(), "the same seed, the same outcome");
        let keys = outcome.activated.iter().map(|it| &it.entry.key);
        let all: Vec<&String> = keys.chain(outcome.skipped.iter().map(|it| &it.entry.key)).collect();
        prop_assert_eq!(all.len(), entries.len(), "each entry is activated or skipped once");
        prop_assert_eq!(all.iter().collect::<HashSet<_>>().len(), entries.len());
        let of = |key: &str| &scan.lorebooks[0].entries[key.parse::<usize>().unwrap()];
        let counted = outcome.activated.iter().filter(|it| !of(&it.entry.key).ignore_budget);
        let n_tokens: i64 = counted.map(|it| it.tokens).sum();
        prop_assert!(n_tokens == 0 || n_tokens < scan.settings.budget);
        prop_assert!(outcome.activated.is_sorted_by_key(|it| it.order));
        scan.timed_effects = outcome.timed_effects;
        scan.n_messages += 1;
        scan.run();
    }
}
