//! `.env.example` names every setting and no others, and shows the defaults.

use std::collections::{BTreeSet, HashMap};

use troupe::config::Config;

const EXAMPLE: &str = include_str!("../../.env.example");

/// Returns the settings of the example, uncommented.
fn example_settings() -> HashMap<String, String> {
    EXAMPLE
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| is_setting_name(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn is_setting_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|it| it.is_ascii_uppercase() || it == '_' || it.is_ascii_digit())
}

#[test]
fn the_example_names_every_setting_and_no_other() {
    let example_settings: BTreeSet<String> = example_settings().into_keys().collect();
    let expected: BTreeSet<String> = Config::names().into_iter().map(str::to_owned).collect();

    assert_eq!(example_settings, expected);
}

#[test]
fn every_setting_is_in_the_example_once() {
    let lines = EXAMPLE.lines().filter(|line| {
        line.strip_prefix('#')
            .and_then(|it| it.split_once('='))
            .is_some_and(|(name, _)| is_setting_name(name))
    });

    assert_eq!(lines.count(), example_settings().len());
}

#[test]
fn the_example_shows_the_defaults() {
    let example_settings = example_settings();

    let from_example = Config::read(|name| example_settings.get(name).cloned()).unwrap();

    assert_eq!(from_example, Config::read(|_| None).unwrap());
}

#[test]
fn the_example_is_a_valid_env_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".env");
    let uncommented: String = example_settings()
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    std::fs::write(&file, uncommented).unwrap();

    let read: HashMap<String, String> = dotenvy::from_path_iter(&file)
        .unwrap()
        .map(Result::unwrap)
        .collect();

    assert_eq!(read, example_settings());
}

#[test]
fn an_invalid_setting_is_named_with_its_value_and_the_allowed_values() {
    let invalid = [
        ("TROUPE_BIND", "nowhere"),
        ("TROUPE_PUBLIC_URL", "troupe.example"),
        ("DATABASE_URL", "mysql://x"),
        ("TROUPE_SECRET_KEY", "short"),
        ("TROUPE_OPEN_REGISTRATION", "maybe"),
        ("TROUPE_WORKERS", "-1"),
        ("TROUPE_MAX_RUNNING_RUNS", "0"),
        ("TROUPE_MAX_RUNNING_PER_PROVIDER", "0"),
        ("RUN_STALE_AFTER_MS", "100"),
        ("SQLITE_SYNCHRONOUS", "sometimes"),
        ("LIMIT_LOGIN_FAILURES", "ten"),
        ("TROUPE_LLM_MODEL", "a\r\nb"),
        ("TROUPE_LLM_API_KEY", "sk-a\nb"),
        ("LOG_FORMAT", "xml"),
    ];

    for (name, value) in invalid {
        let error = Config::read(|it| (it == name).then(|| value.to_owned())).unwrap_err();
        assert_eq!(error.name, name);
        assert!(!error.takes.is_empty());
    }
}

#[test]
fn the_value_of_a_rejected_secret_setting_is_not_shown() {
    let of = |name: &'static str, value: &'static str| {
        Config::read(|it| (it == name).then(|| value.to_owned()))
            .unwrap_err()
            .to_string()
    };

    assert!(!of("DATABASE_URL", "mysql://me:hunter22@host/db").contains("hunter22"));
    assert!(!of("TROUPE_SECRET_KEY", "hunter22").contains("hunter22"));
    assert!(!of("TROUPE_LLM_API_KEY", "hunter22 hunter22").contains("hunter22"));
}
