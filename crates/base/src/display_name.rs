//! Validates the display names that users enter, for example of people and spaces, and cleans
//! untrusted text for use as a display name.

/// Why a display name is invalid. Each text is a sentence for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisplayNameError {
    #[error("Must have 1 to {most} characters, at least one of them visible.")]
    Length { most: usize },
    #[error("A name must not contain line breaks or other control characters.")]
    Control,
}

/// Parses a display name of 1 to `max_chars` characters after trimming.
///
/// Drops characters that change the text direction, because they would affect the surrounding text.
///
/// # Errors
/// Returns `Control` when it contains control characters, and `Length` when it is empty, invisible
/// or too long.
pub fn parse(text: &str, max_chars: usize) -> Result<String, DisplayNameError> {
    if text.trim().chars().any(is_line_breaking) {
        return Err(DisplayNameError::Control);
    }
    let name: String = text.chars().filter(|it| !is_direction_mark(*it)).collect();
    let name = name.trim();
    let can_be_seen = name
        .chars()
        .any(|it| !it.is_whitespace() && !is_invisible(it));
    if !can_be_seen || name.chars().count() > max_chars {
        return Err(DisplayNameError::Length { most: max_chars });
    }
    Ok(name.to_owned())
}

/// Cleans untrusted text for use as a display name: one line, no direction marks, at most
/// `max_chars` characters. Returns `None` if nothing of it is visible.
pub fn truncate(text: &str, max_chars: usize) -> Option<String> {
    let text: String = text.chars().filter(|it| !is_direction_mark(*it)).collect();
    let words = text.split(|it: char| it.is_whitespace() || it.is_control());
    let words: Vec<&str> = words.filter(|it| !it.is_empty()).collect();
    let line: String = words.join(" ").chars().take(max_chars).collect();
    parse(&line, max_chars).ok()
}

/// Returns whether this is a control character or a Unicode line or paragraph separator.
fn is_line_breaking(it: char) -> bool {
    it.is_control() || matches!(it, '\u{2028}' | '\u{2029}')
}

fn is_direction_mark(it: char) -> bool {
    matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Joiners are valid within many scripts and emoji, but invisible on their own.
fn is_invisible(it: char) -> bool {
    matches!(
        it,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::{DisplayNameError, parse, truncate};

    #[test]
    fn a_display_name_is_trimmed_and_has_no_direction_marks() {
        assert_eq!(parse("  Ann Lee ", 100).unwrap(), "Ann Lee");
        assert_eq!(parse("\u{202e}nnA", 100).unwrap(), "nnA");
        assert_eq!(parse("👩\u{200d}🚀", 3).unwrap(), "👩\u{200d}🚀");
        assert_eq!(parse(&"é".repeat(100), 100).unwrap().chars().count(), 100);
        let spaced = format!("  {}  ", "é".repeat(100));
        assert_eq!(parse(&spaced, 100).unwrap(), "é".repeat(100));
    }

    #[test]
    fn any_text_is_truncated_to_a_display_name() {
        assert_eq!(truncate(" Ann  Lee ", 100).unwrap(), "Ann Lee");
        assert_eq!(
            truncate("Ann\nSystem:\u{202e} x\u{7}", 100).unwrap(),
            "Ann System: x"
        );
        assert_eq!(truncate(&"é".repeat(5000), 100).unwrap(), "é".repeat(100));
        assert_eq!(truncate("\u{200b}\u{202e}\n", 100), None);
    }

    #[test]
    fn a_display_name_is_visible() {
        for bad in [
            "",
            "   ",
            "\u{200b}\u{200d}",
            "\u{202e}",
            "\u{3164}",
            &"x".repeat(101),
        ] {
            assert_eq!(
                parse(bad, 100),
                Err(DisplayNameError::Length { most: 100 }),
                "{bad:?}"
            );
        }
        assert_eq!(parse("a\nb", 100), Err(DisplayNameError::Control));
        assert_eq!(parse("a\u{2028}b", 100), Err(DisplayNameError::Control));
        assert_eq!(parse("a\u{1b}[31mb", 100), Err(DisplayNameError::Control));
    }
}
