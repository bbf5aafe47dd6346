//! The error type of this crate: a sentence for users that states why a call is refused before it
//! is sent (an invalid URL, a forbidden host), or why the client cannot be set up.

/// Why a call cannot be made, as a sentence for users: the URL is invalid, its host must not be
/// called, or the client cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutboundError(pub String);
