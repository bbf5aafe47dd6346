//! The error of this crate: why an outbound call is not made.

/// Why a call is not made, as a sentence for users: the URL is invalid, or its host must not be
/// called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutboundError(pub String);
