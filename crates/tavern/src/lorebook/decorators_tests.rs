//! Tests of decorators: valid, unknown, repeated and malformed lines.

use super::{InsertionPosition, PromptRole, split};

#[test]
fn decorator_lines_are_read_and_removed_from_the_text() {
    let (decorators, text) = split(
        "@@depth 3\n@@role assistant\n@@position scenario\n@@scan_depth 7\r\n@@additional_keys a, b\n\
         @@exclude_keys c\n@@activate_only_after 5\n@@activate_only_every 2\nThe lake.\n@@depth 9",
    );

    assert_eq!(text, "The lake.\n@@depth 9");
    assert_eq!(decorators.depth, Some(3));
    assert_eq!(decorators.role, Some(PromptRole::Assistant));
    assert_eq!(decorators.position, Some(InsertionPosition::Scenario));
    assert_eq!(decorators.scan_depth, Some(7));
    assert_eq!(decorators.additional_keys, ["a", "b"]);
    assert_eq!(decorators.exclude_keys, ["c"]);
    assert_eq!(decorators.activate_only_after, Some(5));
    assert_eq!(decorators.activate_only_every, Some(2));
}

#[test]
fn the_first_of_two_equal_decorators_counts() {
    let (decorators, text) = split("@@depth 1\n@@depth 2\nText");

    assert_eq!(decorators.depth, Some(1));
    assert_eq!(text, "Text");
}

#[test]
fn a_fallback_applies_only_if_all_decorators_before_it_are_unknown() {
    let chain =
        "@@x_one 1\n@@@x_two 2\n@@@x_three\n@@@x_four\n@@@depth 4\n@@@depth 5\n@@@role user\nText";
    let (decorators, text) = split(chain);
    let (known, _) = split("@@role system\n@@@depth 4\nText");

    assert_eq!((decorators.depth, decorators.role), (Some(4), None));
    assert_eq!(text, "Text");
    assert_eq!((known.depth, known.role), (None, Some(PromptRole::System)));
}

#[test]
fn an_invalid_value_is_treated_as_an_unknown_decorator() {
    let (decorators, text) = split("@@depth deep\n@@@depth 2\n@@position under_the_bed\nText");

    assert_eq!(decorators.depth, Some(2));
    assert_eq!(decorators.position, None);
    assert_eq!(text, "Text");
}

#[test]
fn a_text_of_decorators_alone_is_empty_and_one_without_is_unchanged() {
    assert_eq!(split("@@activate").1, "");
    assert!(split("@@activate").0.activate);
    assert_eq!(split("  plain @@depth 1").1, "  plain @@depth 1");
}
