//! Validates usernames and new passwords, and normalizes usernames for comparison.

use unicode_normalization::UnicodeNormalization;

/// Why a username or password is invalid. Each text is a sentence for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
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
            || normalize_username(&name).chars().count() > 64
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

/// Returns a username in the form for comparison: NFKC, lower case.
pub fn normalize_username(username: &str) -> String {
    username.nfkc().collect::<String>().to_lowercase()
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

#[cfg(test)]
mod tests {
    use super::{NameError, Password, Username};

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
}
