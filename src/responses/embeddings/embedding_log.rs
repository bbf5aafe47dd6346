//! Writes the log line about the end of a request for embeddings.
//!
//! **Invariant:** exactly one line for each request that was started, and no line contains a text. If the
//! client disconnects, dropping the [`EmbeddingCallLog`] writes the line.

use base::clock::{Clock, Timestamp};

use crate::responses::embeddings::relay_error::RelayError;
use crate::responses::embeddings::relay_request::EmbeddingCaller;
use crate::responses::telemetry::call_log::{CallLog, CallSurface};
use crate::responses::telemetry::call_metrics::CallMetrics;

/// The values of the line that are known at the start. If dropped before [`Self::finish`], writes the line
/// of a canceled request.
pub struct EmbeddingCallLog {
    clock: Clock,
    metrics: CallMetrics,
    started_at: Timestamp,
    caller: EmbeddingCaller,
    provider: String,
    model: String,
    is_written: bool,
}

impl EmbeddingCallLog {
    /// Returns the line of a request that starts now. `model` is the name that the client sent.
    pub fn start(
        clock: &Clock,
        metrics: &CallMetrics,
        caller: &EmbeddingCaller,
        (provider, model): (&str, &str),
    ) -> Self {
        Self {
            clock: clock.clone(),
            metrics: metrics.clone(),
            started_at: clock.now(),
            caller: caller.clone(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            is_written: false,
        }
    }

    /// Writes the line of a request with this result, which is a value and the number of tokens.
    ///
    /// # Errors
    /// Returns the error of the result.
    pub fn finish<T>(
        mut self,
        result: Result<(T, u64), RelayError>,
    ) -> Result<(T, u64), RelayError> {
        match &result {
            Ok((_, n_tokens)) => self.write("completed", i64::try_from(*n_tokens).ok(), None),
            Err(error) => self.write("failed", None, Some(error.reason())),
        }
        result
    }

    fn write(&mut self, status: &str, n_tokens: Option<i64>, reason: Option<&str>) {
        self.is_written = true;
        self.metrics.end(&CallLog {
            origin: &self.caller.origin,
            surface: CallSurface::Embeddings,
            id: None,
            user: self.caller.user,
            model: &self.model,
            provider: Some(&self.provider),
            status,
            reason,
            is_stored: false,
            is_streamed: Some(false),
            is_background: false,
            attempt: 1,
            duration_ms: Some(self.clock.now().ms_since(self.started_at)),
            first_token_ms: None,
            input_tokens: n_tokens,
            cached_tokens: None,
            output_tokens: None,
            n_model_calls: 1,
            n_tool_calls: 0,
            has_client_left: status == "cancelled",
        });
    }
}

impl Drop for EmbeddingCallLog {
    fn drop(&mut self) {
        if !self.is_written {
            self.write("cancelled", None, None);
        }
    }
}
