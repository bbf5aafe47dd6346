//! Defines `Credential`: the browser session or the API key with which a caller authenticated.

use base::ids::{ApiKeyId, SessionId};

/// How a caller authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Credential {
    /// The cookie of a browser.
    Session(SessionId),
    /// The API key of a program.
    ApiKey(ApiKeyId),
}

impl Credential {
    /// Returns the session id if this is a session.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Session(id) => Some(*id),
            Self::ApiKey(_) => None,
        }
    }

    /// Returns the API key id if this is an API key.
    pub fn api_key(&self) -> Option<ApiKeyId> {
        match self {
            Self::ApiKey(id) => Some(*id),
            Self::Session(_) => None,
        }
    }
}
