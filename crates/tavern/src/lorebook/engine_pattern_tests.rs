//! Tests of pattern keys: valid, invalid, slow and too many.

use serde_json::{Value, json};

use super::engine_fixture::fixture;
use crate::import_warning::ImportWarning;

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
    for key in [
        "/dra(gon/",
        "/.{0,5000}x{0,5000}/",
        "/(?<=a{1,900}b{1,900}){900}/",
    ] {
        let scan = fixture(
            &["a dragon"],
            json!([{"keys": ["dragon", key], "comment": "Smaug"}]),
        );
        let outcome = scan.run();

        assert_eq!(scan.reason(), format!("not: bad_pattern: {key}"));
        assert_eq!(outcome.warnings.len(), 1, "{:?}", outcome.warnings);
        assert!(outcome.warnings[0].contains("Smaug") && outcome.warnings[0].contains("Book 1"));
        let coded = json!({
            "code": "lore_key_no_pattern",
            "params": {"entry": "Smaug", "book": "Book 1", "key": key},
        });
        assert_eq!(json!(outcome.warnings[0]), coded);
    }
}

#[test]
fn a_slow_pattern_is_stopped_with_a_warning() {
    let line = "a".repeat(20_000);
    let scan = fixture(&[&line], json!([{"keys": [r"/(?=a)(a+)+\1$x/"]}]));

    let began = std::time::Instant::now();
    let outcome = scan.run();

    assert!(began.elapsed().as_secs() < 5);
    let is_it = |it: &ImportWarning| it.code == "lore_key_too_slow" && it.contains("took too long");
    assert!(outcome.warnings.iter().any(is_it), "{outcome:?}");
}

#[test]
fn only_the_first_two_hundred_patterns_of_a_lorebook_count() {
    let entries: Vec<Value> = (0..201)
        .map(|n| json!({"keys": [format!("/x{n}y/")]}))
        .collect();
    let outcome = fixture(&["x199y x200y"], json!(entries)).run();

    assert_eq!(outcome.activated.len(), 1);
    assert_eq!(outcome.activated[0].entry.key, "199");
    assert!(outcome.warnings[0].contains("more than 200"));
    assert_eq!(outcome.warnings[0].code, "lore_key_too_many");
    assert_eq!(outcome.warnings[0].params["n"], 200);
}
