//! Wraps an API key of a provider so that it cannot be logged.

use std::fmt;

/// An API key. Implements neither `Display` nor `Serialize`; `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key without surrounding blanks, which come from copying.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// Returns the key, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_output_does_not_contain_the_secret() {
        let secret = Secret::new(" sk-planted\n");

        assert_eq!(secret.expose(), "sk-planted");
        assert!(!format!("{secret:?}").contains("planted"));
    }
}
