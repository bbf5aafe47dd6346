//! What people call themselves and their rooms: parsed at the door, never judged again inside.

use unicode_normalization::UnicodeNormalization;

use crate::accounts::user;

/// A name or a password that cannot be. The text of each is a sentence for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("This takes 1 to {most} characters that can be seen.")]
    Length { most: usize },
    #[error("Line breaks and other control characters do not fit into a name.")]
    Control,
    #[error("A username takes 2 to 32 letters, digits, `_`, `-` and `.`.")]
    Username,
    #[error("A password takes 8 to 256 characters.")]
    Password,
}

/// The name by which someone signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Username(String);

impl Username {
    /// # Errors
    /// When it is too short, too long, or holds anything but letters, digits, `_`, `-` and `.`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        // A wide or a styled letter is the same letter.
        let name: String = text.nfkc().take(33).collect();
        let fits = name
            .chars()
            .all(|it| it.is_alphanumeric() || "_-.".contains(it));
        // Folding may lengthen a letter; the column has room for twice as many.
        if !fits
            || !(2..=32).contains(&name.chars().count())
            || user::normalize_username(&name).chars().count() > 64
        {
            return Err(NameError::Username);
        }
        Ok(Self(name))
    }

    /// As it is shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A password that may become one's own.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// # Errors
    /// When it has fewer than 8 or more than 256 characters.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match (8..=256).contains(&text.chars().count()) {
            true => Ok(Self(text.to_owned())),
            false => Err(NameError::Password),
        }
    }

    /// The password itself, for the one who hashes it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// A name that is shown to others, of 1 to `most` characters after trimming.
///
/// Marks that change the direction of what stands beside the name are dropped.
///
/// # Errors
/// When it is empty, nothing of it can be seen, or it is too long; control characters are refused.
pub fn parse_display_name(text: &str, max_chars: usize) -> Result<String, NameError> {
    if text.trim().chars().any(is_line_breaking) {
        return Err(NameError::Control);
    }
    let name: String = text.chars().filter(|it| !is_direction_mark(*it)).collect();
    let name = name.trim();
    let can_be_seen = name
        .chars()
        .any(|it| !it.is_whitespace() && !is_invisible(it));
    if !can_be_seen || name.chars().count() > max_chars {
        return Err(NameError::Length { most: max_chars });
    }
    Ok(name.to_owned())
}

/// A stranger's text made fit to be shown as a name: one line, nothing that turns directions, cut
/// to `most` characters. `None`: nothing of it can be seen.
pub fn truncate_to_display_name(text: &str, max_chars: usize) -> Option<String> {
    let text: String = text.chars().filter(|it| !is_direction_mark(*it)).collect();
    let words = text.split(|it: char| it.is_whitespace() || it.is_control());
    let words: Vec<&str> = words.filter(|it| !it.is_empty()).collect();
    let line: String = words.join(" ").chars().take(max_chars).collect();
    parse_display_name(&line, max_chars).ok()
}

/// Control characters, and the two that Unicode has for the ends of lines and paragraphs.
fn is_line_breaking(it: char) -> bool {
    it.is_control() || matches!(it, '\u{2028}' | '\u{2029}')
}

fn is_direction_mark(it: char) -> bool {
    matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Joiners are part of many a script and of emoji, but alone they are no name.
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
    use super::{NameError, Password, Username, parse_display_name, truncate_to_display_name};

    #[test]
    fn a_username_is_two_to_thirty_two_letters_digits_and_three_signs() {
        for good in ["ab", "Ann.B-c_9", "Žofie", &"x".repeat(32)] {
            assert_eq!(Username::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "a",
            &"x".repeat(33),
            "a b",
            "a@b",
            "a/b",
            "a\u{200b}b",
            " ab",
            "ab\n",
            &"\u{fdfa}".repeat(30),
        ] {
            assert_eq!(Username::parse(bad), Err(NameError::Username), "{bad:?}");
        }
    }

    #[test]
    fn wide_letters_are_the_same_letters() {
        assert_eq!(Username::parse("ａｎｎ").unwrap().as_str(), "ann");
    }

    #[test]
    fn a_password_is_eight_to_two_hundred_and_fifty_six_characters() {
        assert!(Password::parse("éééééééé").is_ok());
        assert!(Password::parse(&"x".repeat(256)).is_ok());
        assert!(Password::parse("1234567").is_err());
        assert!(Password::parse(&"x".repeat(257)).is_err());
    }

    #[test]
    fn a_display_name_is_trimmed_and_has_no_direction_marks() {
        assert_eq!(parse_display_name("  Ann Lee ", 100).unwrap(), "Ann Lee");
        assert_eq!(parse_display_name("\u{202e}nnA", 100).unwrap(), "nnA");
        assert_eq!(
            parse_display_name("👩\u{200d}🚀", 3).unwrap(),
            "👩\u{200d}🚀"
        );
        assert_eq!(
            parse_display_name(&"é".repeat(100), 100)
                .unwrap()
                .chars()
                .count(),
            100
        );
        let spaced = format!("  {}  ", "é".repeat(100));
        assert_eq!(parse_display_name(&spaced, 100).unwrap(), "é".repeat(100));
    }

    #[test]
    fn any_text_is_truncated_to_a_display_name() {
        assert_eq!(
            truncate_to_display_name(" Ann  Lee ", 100).unwrap(),
            "Ann Lee"
        );
        assert_eq!(
            truncate_to_display_name("Ann\nSystem:\u{202e} x\u{7}", 100).unwrap(),
            "Ann System: x"
        );
        assert_eq!(
            truncate_to_display_name(&"é".repeat(5000), 100).unwrap(),
            "é".repeat(100)
        );
        assert_eq!(truncate_to_display_name("\u{200b}\u{202e}\n", 100), None);
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
                parse_display_name(bad, 100),
                Err(NameError::Length { most: 100 }),
                "{bad:?}"
            );
        }
        assert_eq!(parse_display_name("a\nb", 100), Err(NameError::Control));
        assert_eq!(
            parse_display_name("a\u{2028}b", 100),
            Err(NameError::Control)
        );
        assert_eq!(
            parse_display_name("a\u{1b}[31mb", 100),
            Err(NameError::Control)
        );
    }
}
