//! Tests of how the pattern of a script is read.

use super::{insert_macros, split};
use crate::regex_scripts::script_error::ScriptError;

fn expand(text: &str) -> Result<String, ScriptError> {
    Ok(match text {
        "{{char}}" => "A.da (the\nFirst)".to_owned(),
        other => other.to_owned(),
    })
}

#[test]
fn a_pattern_between_slashes_has_flags() {
    let cases = [
        ("/a/g", ("a", "g")),
        ("/a/b/gi", ("a/b", "gi")),
        ("/a\\/b/", ("a\\/b", "")),
        ("a", ("a", "")),
        ("//", ("//", "")),
        ("/a/b", ("/a/b", "")),
        ("/", ("/", "")),
        ("", ("", "")),
    ];

    for (find_regex, expected) in cases {
        assert_eq!(split(find_regex), expected, "{find_regex}");
    }
}

#[test]
fn macros_are_inserted_as_they_are_or_as_literal_text() {
    let inserted = |escapes| insert_macros("^{{char}}: a{2,3}", escapes, &expand);

    assert_eq!(inserted(false), Ok("^A.da (the\nFirst): a{2,3}".to_owned()));
    assert_eq!(
        inserted(true),
        Ok("^A\\.da \\(the\\nFirst\\): a{2,3}".to_owned())
    );
}

#[test]
fn what_is_no_macro_is_unchanged() {
    for source in ["(?<user>a)", "a{{", "{{unknown}}", "{{{{", "x{{a{{b}}"] {
        assert_eq!(insert_macros(source, true, &expand), Ok(source.to_owned()));
    }
}
