//! Defines the data of a speaker's first model call in a response: provider, request, permits and
//! metadata.

use std::sync::Arc;

use agent::tools::tool::ServerTool;
use agent::trim::ReplyTrimmer;
use llm::provider::Provider;
use llm::request::Request;
use serde_json::Value;

use crate::responses::provider_calls::ProviderCalls;

/// The first model call of one speaker.
#[derive(Clone)]
pub struct SpeakerCall {
    pub provider: Arc<dyn Provider>,
    /// The provider's name, for the log.
    pub provider_name: String,
    pub request: Request,
    /// The calls of its provider, which are limited.
    pub calls: Arc<ProviderCalls>,
    /// Cleans the text.
    pub trim: ReplyTrimmer,
    /// The metadata of its items; `None` for a plain model.
    pub speaker_metadata: Option<Value>,
    /// The memory tool of the speaker, if the request declares it.
    pub memory: Option<Arc<dyn ServerTool>>,
}
