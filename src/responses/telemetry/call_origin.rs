//! Defines [`CallOrigin`], which identifies the HTTP request of a call in the log.

use std::sync::Arc;

/// The HTTP request of a call; unknown for a call that another node or process has accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOrigin {
    /// The value of `x-request-id`.
    pub request_id: Option<Arc<str>>,
    /// The first characters of the API key, which its owner sees in the list of keys.
    pub key_prefix: Option<Arc<str>>,
}
