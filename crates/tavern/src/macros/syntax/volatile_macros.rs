//! Finds the volatile macros of a text: those whose value usually differs between two consecutive prompts,
//! because it depends on the time of day, on chance or on the newest messages. Dates change once a day, so
//! their macros are not volatile.

use std::collections::BTreeSet;

use crate::macros::date_time;
use crate::macros::syntax::names;
use crate::macros::syntax::names::{COMMENT, MacroSpec, TIME_AT_OFFSET};
use crate::macros::syntax::parser::parse;
use crate::macros::syntax::tree::{MacroCall, MacroNode};

/// The first names of the volatile macros. `{{datetimeformat}}` is one if its pattern contains the time of day.
const VOLATILE: [&str; 12] = [
    "time",
    TIME_AT_OFFSET,
    "isotime",
    "idleduration",
    "random",
    "roll",
    "lastmessage",
    "lastusermessage",
    "lastcharmessage",
    "lastmessageid",
    "firstincludedmessageid",
    "allchatrange",
];

/// Returns the names of the volatile macros, as written, each once. Empty for a text beyond the limits.
pub fn find(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    add_all(&parse(text).unwrap_or_default(), &mut found);
    found
}

fn add_all(nodes: &[MacroNode<'_>], found: &mut BTreeSet<String>) {
    for node in nodes {
        if let MacroNode::Macro(call) = node {
            add(call, found);
        }
    }
}

fn add(call: &MacroCall<'_>, found: &mut BTreeSet<String>) {
    if let Some(head) = call.head().filter(|it| !it.is_closing)
        && let Some(spec) = names::find(head.name)
    {
        if matches!(spec.name, COMMENT | "comment") {
            return;
        }
        if is_volatile(spec, call) {
            found.insert(head.name.to_owned());
        }
    }
    call.parts.iter().for_each(|it| add_all(it, found));
    if let Some(block) = &call.block {
        add_all(&block.nodes, found);
        add_all(block.otherwise.as_deref().unwrap_or_default(), found);
    }
}

fn is_volatile(spec: MacroSpec, call: &MacroCall<'_>) -> bool {
    if !(spec.min_args..=spec.max_args).contains(&call.n_args()) {
        return false; // such a macro is not expanded
    }
    match spec.name {
        "datetimeformat" => date_time::has_time_of_day(&pattern_text(call)),
        name => VOLATILE.contains(&name),
    }
}

/// Returns the pattern without its inner macros, which `add` checks on their own.
fn pattern_text(call: &MacroCall<'_>) -> String {
    let mut pattern = String::new();
    for (start, nodes) in call.arguments() {
        pattern += start;
        for node in nodes {
            if let MacroNode::Text(text) = node {
                pattern += text;
            }
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::find;

    #[derive(Deserialize)]
    struct Case {
        text: String,
        found: Vec<String>,
    }

    /// `tests/web/volatile_entries.test.mjs` checks the same cases.
    #[test]
    fn macros_of_time_chance_and_the_newest_message_are_volatile() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/fixtures/volatile_macros.json"
        );
        let cases = std::fs::read_to_string(path).expect("the fixture is readable");
        let cases: Vec<Case> =
            serde_json::from_str(&cases).expect("the fixture is a list of cases");
        for case in cases {
            let found: Vec<String> = find(&case.text).into_iter().collect();

            assert_eq!(found, case.found, "{}", case.text);
        }
    }
}
