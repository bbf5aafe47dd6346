//! Checks that every test named in `docs/scheduling-rules.md` exists and runs on the databases of
//! its column, so that a renamed or deleted test is detected.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/scheduling-rules.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &str) -> Vec<String> {
    let mut pending: Vec<PathBuf> = vec![root().join(folder)];
    let mut texts = Vec::new();
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be listed") {
            let path = entry.expect("the folder entry can be read").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                texts.push(fs::read_to_string(&path).expect("the source file is UTF-8"));
            }
        }
    }
    texts
}

/// Returns the names of the functions; `declared` returns the rest of a line that declares one.
fn names<'a>(
    text: &'a str,
    declared: impl Fn(&'a str) -> Option<&'a str> + 'a,
) -> impl Iterator<Item = String> + 'a {
    text.lines()
        .filter_map(move |line| declared(line.trim()))
        .filter_map(|rest| rest.split_once('('))
        .map(|(name, _)| name.to_owned())
}

/// Returns the tests that use a database: the functions of every `on_both!` and `on_sqlite!`.
fn with_database() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in sources("tests/it") {
        for block in text.split("\non_").skip(1) {
            if !block.starts_with("both! {") && !block.starts_with("sqlite! {") {
                continue;
            }
            let block = block.split("\n}").next().unwrap_or_default();
            found.extend(names(block, |it| it.strip_prefix("async fn ")));
        }
    }
    found
}

/// Returns the tests without a database: functions after a `#[test]` or in a `proptest!`.
fn pure() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in ["src", "crates", "tests/model"]
        .into_iter()
        .flat_map(sources)
    {
        for test in text.split("#[test]").skip(1) {
            found.extend(names(test, |it| it.strip_prefix("fn ")).next());
        }
    }
    found
}

struct Rule {
    description: String,
    with_database: Vec<String>,
    pure: Vec<String>,
}

fn rules() -> Vec<Rule> {
    let page = fs::read_to_string(root().join(PAGE)).expect("the page can be read");
    let named = |cell: &str| -> Vec<String> {
        let ticked = cell.split('`').skip(1).step_by(2);
        ticked.map(str::to_owned).collect()
    };
    let rows = page.lines().filter(|it| it.starts_with("| "));
    let cells = rows.map(|row| row.trim_matches('|').split('|').collect::<Vec<_>>());
    cells
        .filter(|it| !matches!(it[0].trim(), "rule" | "---"))
        .map(|it| {
            assert_eq!(it.len(), 3, "the row does not have three columns: {it:?}");
            Rule {
                description: it[0].trim().to_owned(),
                with_database: named(it[1]),
                pure: named(it[2]),
            }
        })
        .collect()
}

#[test]
fn every_rule_has_a_test_on_the_databases_of_its_column() {
    let (with_database, pure) = (with_database(), pure());
    assert!(
        with_database.len() > 100 && pure.len() > 100,
        "no tests were found"
    );
    let mut errors = Vec::new();
    for rule in rules() {
        if rule.with_database.is_empty() && rule.pure.is_empty() {
            errors.push(format!("{}: no test at all", rule.description));
        }
        let missing = |named: &[String], there: &BTreeSet<String>| -> Vec<String> {
            named
                .iter()
                .filter(|it| !there.contains(*it))
                .cloned()
                .collect()
        };
        for name in missing(&rule.with_database, &with_database) {
            errors.push(format!(
                "{}: {name} is not a test of on_both! or on_sqlite!",
                rule.description
            ));
        }
        for name in missing(&rule.pure, &pure) {
            errors.push(format!(
                "{}: {name} is not a test without a database",
                rule.description
            ));
        }
    }
    assert!(errors.is_empty(), "{PAGE}:\n{}", errors.join("\n"));
}
