//! Defines [`EmbeddingCaller`], who requests embeddings.

use base::ids::UserId;

use crate::responses::telemetry::call_origin::CallOrigin;

/// Who requests embeddings, and by which HTTP request.
#[derive(Clone, Debug)]
pub struct EmbeddingCaller {
    pub user: UserId,
    /// For the log.
    pub origin: CallOrigin,
}
