//! Defines [`CallLog`], the log line about the end of one call of a client: a response, a chat
//! completion, a request for embeddings, or a run of the Assistants API.

use base::ids::UserId;

use crate::responses::telemetry::call_origin::CallOrigin;

/// The part of `/v1` that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSurface {
    Responses,
    ChatCompletions,
    Embeddings,
    Assistants,
}

impl CallSurface {
    /// Returns the value of the field `surface` in the log and of the label in the metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::ChatCompletions => "chat_completions",
            Self::Embeddings => "embeddings",
            Self::Assistants => "assistants",
        }
    }

    /// Returns whether the call converts texts to vectors.
    pub fn is_embeddings(self) -> bool {
        self == Self::Embeddings
    }
}

/// The fields of the line. Unknown values are omitted.
#[derive(Clone, Debug)]
pub struct CallLog<'a> {
    pub origin: &'a CallOrigin,
    pub surface: CallSurface,
    /// The id of the object that the call created.
    pub id: Option<&'a str>,
    pub user: UserId,
    /// The model as the client named it.
    pub model: &'a str,
    /// The name of the first provider that was called.
    pub provider: Option<&'a str>,
    pub status: &'a str,
    /// The reason if it is incomplete, or the code of its error.
    pub reason: Option<&'a str>,
    pub is_stored: bool,
    pub is_streamed: Option<bool>,
    pub is_background: bool,
    pub attempt: i64,
    pub duration_ms: Option<i64>,
    pub first_token_ms: Option<i64>,
    pub input_tokens: Option<i64>,
    pub cached_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub n_model_calls: u32,
    pub n_tool_calls: u32,
    /// The client disconnected, which ended the call.
    pub has_client_left: bool,
}

impl CallLog<'_> {
    /// Writes the line.
    pub fn write(&self) {
        let (surface, status) = (self.surface.label(), self.status);
        tracing::info!(
            request_id = self.origin.request_id.as_deref(),
            surface,
            id = self.id,
            user_id = %self.user,
            key_prefix = self.origin.key_prefix.as_deref(),
            model = self.model,
            provider = self.provider,
            status,
            reason = self.reason,
            stored = self.is_stored,
            stream = self.is_streamed,
            background = self.is_background,
            attempt = self.attempt,
            duration_ms = self.duration_ms,
            first_token_ms = self.first_token_ms,
            input_tokens = self.input_tokens,
            cached_tokens = self.cached_tokens,
            output_tokens = self.output_tokens,
            model_calls = self.n_model_calls,
            tool_calls = self.n_tool_calls,
            client_left = self.has_client_left,
            "{surface} call {status}",
        );
    }
}
