//! Defines why a pattern is invalid.

/// Why a pattern is invalid, in the words of JavaScript engines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at {position}")]
pub struct PatternSyntaxError {
    pub reason: &'static str,
    /// Where the parser stopped: the number of characters of the pattern before that point.
    pub position: usize,
}
