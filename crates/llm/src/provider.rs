//! The trait `Provider`, which sends a request to a model and streams the response, and the
//! capabilities that only some providers have.

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::delta::Delta;
use crate::error::LlmError;
use crate::request::Request;

/// A response as a stream of deltas, returned by [`Provider::stream`]. Dropping it ends the call.
pub type DeltaStream = BoxStream<'static, Result<Delta, LlmError>>;

/// A model provider.
///
/// Implementations neither retry nor limit the time: the crate `agent` does both for all providers.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Sends the request and resolves when the response begins (its headers have arrived).
    async fn stream(&self, request: &Request) -> Result<DeltaStream, LlmError>;

    /// Returns the name for logs and metrics, which is the kind in the provider's settings.
    fn kind(&self) -> &'static str;

    /// Returns whether the API supports a capability. A request that needs a missing one is
    /// rejected before it is sent. Whether the model complies is up to the API.
    fn has_capability(&self, capability: Capability) -> bool;

    /// Returns the lowest token limit that is sent to the API for such a request. A request with a lower limit
    /// is sent with this one, so its reply may be longer than requested.
    fn min_output_tokens(&self, _request: &Request) -> u32 {
        1
    }

    /// Returns how many stop sequences are sent. The server that calls the provider ends the text at
    /// the others.
    fn max_stops(&self) -> usize {
        usize::MAX
    }

    /// Returns whether it continues the [text](Request::prompt_text) of a request.
    fn completes_text(&self) -> bool {
        false
    }

    /// Returns how many tokens a text has for its model. `None`: the API does not count them, or did not answer
    /// in time.
    async fn count_tokens(&self, _text: &str) -> Option<i64> {
        None
    }

    /// Returns whether the model of such a request continues a message of its own at the end of the
    /// prompt, so that the request may be [prefilled](Request::is_prefilled).
    fn can_prefill(&self, _request: &Request) -> bool {
        false
    }
}

/// Features that not every API supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// [`OutputFormat::Json`](crate::tool::OutputFormat::Json): any JSON object.
    Json,
    /// [`OutputFormat::Schema`](crate::tool::OutputFormat::Schema): JSON that matches a
    /// schema.
    Schema,
    /// [`ToolChoice::Required`](crate::tool::ToolChoice::Required) and a named tool: the model
    /// must call.
    RequiredToolCall,
    /// [`Request::top_logprobs`]: log probabilities of the tokens.
    Logprobs,
    /// [`Attachment`](crate::tool::Attachment)s that are documents.
    Documents,
    /// [`Request::effort`]: how much the model should reason.
    Effort,
    /// A summary of the reasoning, which the API returns whenever the model reasons.
    ReasoningSummary,
}
