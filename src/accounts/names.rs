//! Parses usernames, passwords and display names into valid values.

use unicode_normalization::UnicodeNormalization;

use crate::accounts::user;

/// Why a name or password is invalid. Each text is a sentence for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("Must have 1 to {most} characters, at least one of them visible.")]
    Length { most: usize },
    #[error("A name must not contain line breaks or other control characters.")]
    Control,
    #[error("A username must have 2 to 32 letters, digits, `_`, `-` or `.`.")]
    Username,
    #[error("A password must have 8 to 256 characters.")]
    Password,
}

/// The name with which a user signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Username(String);

impl Username {
    /// Parses a username.
    ///
    /// # Errors
    /// Returns `Username` when it is too short, too long, or contains anything except letters,
    /// digits, `_`, `-` and `.`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        // Full-width and styled letters become the plain letter.
        let name: String = text.nfkc().take(33).collect();
        let fits = name
            .chars()
            .all(|it| it.is_alphanumeric() || "_-.".contains(it));
        // Case folding may lengthen a name; the column holds up to 64 characters.
        if !fits
            || !(2..=32).contains(&name.chars().count())
            || user::normalize_username(&name).chars().count() > 64
        {
            return Err(NameError::Username);
        }
        Ok(Self(name))
    }

    /// Returns the name as it is displayed.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A valid new password.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Parses a password.
    ///
    /// # Errors
    /// Returns `Password` when it has fewer than 8 or more than 256 characters.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match (8..=256).contains(&text.chars().count()) {
            true => Ok(Self(text.to_owned())),
            false => Err(NameError::Password),
        }
    }

    /// Returns the password for hashing.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Parses a display name of 1 to `max_chars` characters after trimming.
///
/// Drops characters that change the text direction, because they would affect the surrounding text.
///
/// # Errors
/// Returns `Control` when it contains control characters, and `Length` when it is empty, invisible
/// or too long.
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

/// Cleans untrusted text for use as a display name: one line, no direction marks, at most
/// `max_chars` characters. Returns `None` if nothing of it is visible.
pub fn truncate_to_display_name(text: &str, max_chars: usize) -> Option<String> {
    let text: String = text.chars().filter(|it| !is_direction_mark(*it)).collect();
    let words = text.split(|it: char| it.is_whitespace() || it.is_control());
    let words: Vec<&str> = words.filter(|it| !it.is_empty()).collect();
    let line: String = words.join(" ").chars().take(max_chars).collect();
    parse_display_name(&line, max_chars).ok()
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
    use super::{NameError, Password, Username, parse_display_name, truncate_to_display_name};

    #[test]
    fn a_username_has_2_to_32_letters_digits_and_allowed_punctuation() {
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
    fn full_width_letters_become_plain_letters() {
        assert_eq!(Username::parse("ａｎｎ").unwrap().as_str(), "ann");
    }

    #[test]
    fn a_password_has_8_to_256_characters() {
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
