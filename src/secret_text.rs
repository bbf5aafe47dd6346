//! Defines [`SecretText`], the value of a setting that must not appear in logs.

use std::fmt;
use std::ops::Deref;

/// A text that must not be logged: its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(pub String);

impl Deref for SecretText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}
