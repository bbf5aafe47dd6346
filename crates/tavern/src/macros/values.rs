//! Converts the texts that macros read: to numbers, to truth values, to the trimmed text of a block.

/// Returns whether a value is true: neither empty nor `0`, `false` or `off`.
pub fn is_true(value: &str) -> bool {
    let value = value.trim();
    let false_values = ["", "0", "false", "off"];
    !false_values.iter().any(|it| value.eq_ignore_ascii_case(it))
}

/// Parses a number; `None` for a text without one.
pub fn to_number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    // `inf` and `nan` are words.
    number.is_finite().then_some(number)
}

/// Removes the indentation of the first line that is not blank from all lines, and then the white
/// space around the text.
pub fn trim_block(text: &str) -> String {
    let mut lines = text.lines();
    let Some(first) = lines.find(|it| !it.trim().is_empty()) else {
        return String::new();
    };
    let n_indented = first.chars().take_while(|it| it.is_whitespace()).count();
    if n_indented == 0 {
        return text.trim().to_owned();
    }
    let lines = text.split('\n').map(|line| {
        let is_indentation = |(at, it): &(usize, char)| *at < n_indented && it.is_whitespace();
        let cut = line.chars().enumerate().take_while(is_indentation);
        &line[cut.map(|(_, it)| it.len_utf8()).sum()..]
    });
    let lines: Vec<&str> = lines.collect();
    lines.join("\n").trim().to_owned()
}

/// Removes one pair of quotation marks around a text.
pub fn unquote(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inside.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::{is_true, to_number, trim_block, unquote};

    #[test]
    fn only_four_values_are_false() {
        for value in ["", " ", "0", "false", "FALSE", " off "] {
            assert!(!is_true(value), "{value}");
        }
        for value in ["1", "no", "00", "f", "true"] {
            assert!(is_true(value), "{value}");
        }
    }

    #[test]
    fn a_block_loses_the_indentation_of_its_first_line() {
        let cases = [
            ("\n  # A\n    b\n  c\n d\n", "# A\n  b\nc\nd"),
            ("a\n  b", "a\n  b"),
            (" \n\t\n", ""),
            ("\n　漢\n　字", "漢\n字"),
        ];
        for (text, expected) in cases {
            assert_eq!(trim_block(text), expected, "{text:?}");
        }
    }

    #[test]
    fn words_are_not_numbers() {
        assert_eq!(to_number(" 2.5 "), Some(2.5));
        for text in ["", "inf", "NaN", "1a", "0x1"] {
            assert_eq!(to_number(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_pair_of_quotation_marks_is_removed() {
        assert_eq!(unquote(" \"a \" "), "a ");
        assert_eq!(unquote("\"a"), "\"a");
        assert_eq!(unquote("\""), "\"");
    }
}
