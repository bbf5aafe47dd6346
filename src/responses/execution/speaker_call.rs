//! The first model call of one speaker of a response.

use std::sync::Arc;

use agent::trim::ReplyTrimmer;
use llm::provider::Provider;
use llm::request::Request;
use serde_json::Value;
use tokio::sync::Semaphore;

/// The first model call of one speaker.
pub struct SpeakerCall {
    pub provider: Arc<dyn Provider>,
    /// The provider's name, for the log.
    pub provider_name: String,
    pub request: Request,
    /// Limits concurrent calls of its provider.
    pub permits: Arc<Semaphore>,
    /// Cleans the text.
    pub trim: ReplyTrimmer,
    /// The metadata of its items; `None` for a plain model.
    pub speaker_metadata: Option<Value>,
}
