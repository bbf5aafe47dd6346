//! The one thing that every model can do: stream an answer.

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::llm::delta::Delta;
use crate::llm::error::LlmError;
use crate::llm::request::Request;

/// What [`Provider::stream`] gives: the answer, piece by piece. Dropping it ends the call.
pub type DeltaStream = BoxStream<'static, Result<Delta, LlmError>>;

/// Somebody who answers prompts.
///
/// Implementations neither retry nor limit the time: `generation/` does both, the same for all.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Sends the request and resolves when the answer begins (the response headers came).
    async fn stream(&self, request: &Request) -> Result<DeltaStream, LlmError>;

    /// The word for logs and metrics, the same as in the provider's settings.
    fn kind(&self) -> &'static str;

    /// Whether its API has words for this. Who asks for what it cannot do is refused before anything
    /// begins; that the model obeys is the API's promise, not ours.
    fn has_capability(&self, capability: Capability) -> bool;
}

/// Something that not every API can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// [`Format::Json`](crate::llm::tool::Format::Json): some JSON object.
    Json,
    /// [`Format::Schema`](crate::llm::tool::Format::Schema): JSON that fits a schema.
    Schema,
    /// [`ToolChoice::Required`](crate::llm::tool::ToolChoice::Required) and a named tool: the model
    /// must call.
    RequiredToolCall,
    /// [`Request::top_logprobs`]: how likely each token was.
    Logprobs,
    /// [`Attachment`](crate::llm::tool::Attachment)s that are documents.
    Documents,
}
