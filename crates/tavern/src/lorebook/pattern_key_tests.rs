//! Tests of how pattern keys are written.

use super::{compile, escape_slashes, parse_literal};

#[test]
fn a_pattern_is_written_between_slashes_with_known_flags() {
    assert_eq!(parse_literal("/a+/gi"), Some(("a+", "gi")));
    assert_eq!(parse_literal("/a+/dgimsuvy"), Some(("a+", "dgimsuvy")));
    assert_eq!(parse_literal(r"/a\/b/"), Some((r"a\/b", "")));
    for plain in ["a", "/a", "//", "/a/b/", "/a/x", "/usr/bin", "/"] {
        assert_eq!(parse_literal(plain), None, "{plain}");
    }
}

#[test]
fn a_pattern_with_escaped_slashes_is_the_same_pattern() {
    for body in ["a/b", r"a\/b", r"\\/", "[/]"] {
        let key = format!("/{}/", escape_slashes(body));

        let (escaped, _) = parse_literal(&key).expect(&key);
        assert!(compile(escaped, "").is_ok(), "{key}");
    }
}

#[test]
fn a_compiled_pattern_is_cached_by_its_text_and_flags() {
    let [first, again, other] = ["i", "i", "m"].map(|flags| compile("cached", flags).unwrap());

    assert!(std::sync::Arc::ptr_eq(&first, &again));
    assert!(!std::sync::Arc::ptr_eq(&first, &other));
}
