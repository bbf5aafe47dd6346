//! Splits a long text into parts that fit into the context window of a model, between lines if possible.

/// Splits a text into parts of at most `max_bytes` each; a part ends after a blank line if there is one in
/// its second half, else after a line or a space, else anywhere between two characters. The parts
/// together are the text.
pub fn split(text: &str, max_bytes: usize) -> Vec<&str> {
    let max_bytes = max_bytes.max(4); // the longest character
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > max_bytes {
        let window = &rest[..rest.floor_char_boundary(max_bytes)];
        let end = ["\n\n", "\n", " "]
            .iter()
            .find_map(|it| end_of_last(window, it))
            .unwrap_or(window.len());
        let (part, others) = rest.split_at(end);
        parts.push(part);
        rest = others;
    }
    parts.push(rest);
    parts
}

/// Returns where the last separator ends, if that is in the second half of the window.
fn end_of_last(window: &str, separator: &str) -> Option<usize> {
    let end = window.rfind(separator)? + separator.len();
    (end > window.len() / 2).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_text_that_fits_is_one_part() {
        assert_eq!(split("One.\n\nTwo.", 100), ["One.\n\nTwo."]);
        assert_eq!(split("", 100), [""]);
    }

    #[test]
    fn a_long_text_is_split_after_a_paragraph_a_line_or_a_word() {
        assert_eq!(
            split("One one.\n\nTwo two.", 12),
            ["One one.\n\n", "Two two."]
        );
        assert_eq!(split("One one.\nTwo two.", 12), ["One one.\n", "Two two."]);
        assert_eq!(split("One one two two.", 12), ["One one two ", "two."]);
        assert_eq!(split("ÄÄÄÄÄ", 5), ["ÄÄ", "ÄÄ", "Ä"]);
    }

    #[test]
    fn the_parts_together_are_the_text() {
        let text = "Wörter und\n\nZeilen, 改行、 and a_very_long_word_without_any_space.".repeat(9);
        for max_bytes in 1..80 {
            let parts = split(&text, max_bytes);
            assert_eq!(parts.concat(), text);
            assert!(
                parts
                    .iter()
                    .all(|it| it.len() <= max_bytes.max(4) && !it.is_empty())
            );
        }
    }
}
