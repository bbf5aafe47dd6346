//! Tests of pattern keys: valid, invalid, slow and many.

use serde_json::{Value, json};

use super::engine_fixture::fixture;

#[test]
fn patterns_have_the_syntax_of_javascript() {
    let cases = [
        (r"/drag(on|oon)s?/", "the dragoons", true),
        (r"/DRAGON/i", "a dragon", true),
        (r"/DRAGON/", "a dragon", false),
        (r"/\bcat\b/", "concat", false),
        (r"/a\/b/", "a/b", true),
        (r"/(?<!no )dragon/", "no dragon", false),
        (r"/(?<!no )dragon/", "one dragon", true),
        (r"/(\w)\1/", "abba", true),
        (r"/\x01Ben: hi/", "hi there", true),
        (r"/^hi/m", "hi there", false),
        (r"/{{weird}}/", "a {{weird}} brace", true),
        (r"/[^]dragon/", "a\ndragon", true),
        // An unescaped inner slash makes it a plain key.
        ("/a/b/", "see /a/b/ there", true),
    ];

    for (key, line, expected) in cases {
        let entry = json!([{"keys": [key], "extensions": {"match_whole_words": true}}]);
        assert_eq!(
            fixture(&[line], entry).run().activated.len() == 1,
            expected,
            "{key} in {line:?}"
        );
    }
}

#[test]
fn the_keys_of_an_entry_with_use_regex_are_patterns_and_it_is_never_constant() {
    let entry = |key: &str| json!([{"keys": [key], "use_regex": true, "constant": true}]);

    assert_eq!(
        fixture(&["a DRAGON"], entry("drag.n")).reason(),
        "key: drag.n"
    );
    assert_eq!(
        fixture(&["a wolf"], entry("drag.n")).reason(),
        "not: no_key"
    );
    // SillyTavern writes `use_regex` for every entry; its plain keys stay plain.
    let exported =
        json!([{"keys": ["c++"], "use_regex": true, "extensions": {"selectiveLogic": 0}}]);
    assert_eq!(fixture(&["I like c++"], exported).reason(), "key: c++");
}

#[test]
fn an_entry_with_an_invalid_pattern_is_inactive_with_a_warning() {
    for (key, reason) in [
        ("/dra(gon/", "unterminated group at 7"),
        ("/(?i)dragon/", "invalid group at 3"),
        ("/drag.n/ii", "invalid flags at 6"),
    ] {
        let scan = fixture(
            &["a dragon"],
            json!([{"keys": ["dragon", key], "comment": "Smaug"}]),
        );
        let outcome = scan.run();

        assert_eq!(scan.reason(), format!("not: bad_pattern: {key}"));
        assert_eq!(outcome.warnings.len(), 1, "{:?}", outcome.warnings);
        let warning = &outcome.warnings[0];
        assert!(
            ["Smaug", "Book 1", reason]
                .iter()
                .all(|it| warning.contains(it))
        );
        let coded = json!({
            "code": "lore_key_no_pattern",
            "params": {"reason": reason, "entry": "Smaug", "book": "Book 1", "key": key},
        });
        assert_eq!(json!(warning), coded);
    }
}

#[test]
fn a_large_repetition_is_no_reason_to_refuse_a_pattern() {
    for key in [
        r"/\bking\b(?=.{0,200}\bqueen\b)/",
        "/k.{0,5000}x{0,5000}/",
        "/(?<!a{1,900}b{1,900}){900}king/",
        r"/(?:\W+\w+){0,900}king/",
    ] {
        let scan = fixture(&["a king and a queen"], json!([{"keys": [key]}]));

        let expected = match key.contains("){900}") {
            true => format!("not: bad_pattern: {key}"),
            false => format!("key: {key}"),
        };
        assert_eq!(scan.reason(), expected);
    }
}

#[test]
fn a_pattern_that_needs_too_many_steps_is_inactive_with_a_warning() {
    let line = "a".repeat(20_000);
    let key = r"/(?=a)(a+)+\1$x/";
    let entries = json!([{"keys": [key], "comment": "Slow"}, {"keys": ["/a{3}/"]}]);
    let outcome = fixture(&[&line], entries).run();

    assert_eq!(outcome.activated.len(), 1);
    assert_eq!(
        outcome.skipped[0].reason.to_string(),
        format!("too_slow: {key}")
    );
    assert_eq!(outcome.warnings.len(), 1, "{:?}", outcome.warnings);
    let warning = &outcome.warnings[0];
    assert!(warning.contains("Slow") && warning.contains("more than 2000000 steps"));
    let coded = json!({
        "code": "lore_key_too_slow",
        "params": {"n": 2_000_000, "entry": "Slow", "book": "Book 1", "key": key},
    });
    assert_eq!(json!(warning), coded);
}

#[test]
fn a_pattern_that_is_aborted_in_a_later_pass_has_a_warning() {
    let long = "a".repeat(20_000);
    let scan = |content: &str| {
        let mut scan = fixture(
            &["start"],
            json!([
                {"keys": ["start"], "content": content},
                {"keys": [r"/(?=a)(a+)+\1$x/"]},
            ]),
        );
        scan.settings.recursive = true;
        scan.run().warnings.len()
    };

    assert_eq!((scan("b"), scan(&long)), (0, 1));
}

#[test]
fn every_pattern_of_a_large_lorebook_counts() {
    let entries: Vec<Value> = (0..3_000)
        .map(|n| json!({"keys": [format!("/(?<!not )x{n}y/")]}))
        .collect();
    let outcome = fixture(&["x199y x200y x2999y not x5y"], json!(entries)).run();

    let keys = outcome.activated.iter().map(|it| it.entry.key.as_str());
    assert_eq!(
        keys.collect::<std::collections::BTreeSet<_>>(),
        ["199", "200", "2999"].into()
    );
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
}
