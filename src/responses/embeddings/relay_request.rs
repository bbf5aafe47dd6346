//! Defines [`EmbeddingCaller`], the user and the HTTP request that request embeddings.

use base::ids::UserId;

use crate::responses::telemetry::call_origin::CallOrigin;

/// The user that requests embeddings, and the HTTP request.
#[derive(Clone, Debug)]
pub struct EmbeddingCaller {
    pub user: UserId,
    /// For the log.
    pub origin: CallOrigin,
}
