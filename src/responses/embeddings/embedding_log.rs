//! Writes the log line about the end of a request for embeddings.
//!
//! **Invariant:** exactly one line for each request that was started, and no line contains a text. If the
//! client disconnects, dropping the [`EmbeddingLog`] writes the line.

use base::clock::{Clock, Timestamp};
use base::ids::UserId;

use crate::responses::embeddings::relay_error::RelayError;

/// The values of the line that are known at the start. If dropped before [`Self::finish`], writes the line
/// of a canceled request.
pub struct EmbeddingLog {
    clock: Clock,
    started_at: Timestamp,
    user: UserId,
    provider: String,
    model: String,
    n_texts: usize,
    is_written: bool,
}

impl EmbeddingLog {
    /// Returns the line of a request that starts now.
    pub fn start(
        clock: &Clock,
        user: UserId,
        (provider, model): (&str, &str),
        n_texts: usize,
    ) -> Self {
        Self {
            clock: clock.clone(),
            started_at: clock.now(),
            user,
            provider: provider.to_owned(),
            model: model.to_owned(),
            n_texts,
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
            Ok((_, n_tokens)) => self.write("completed", Some(*n_tokens), None),
            Err(error) => self.write("failed", None, Some(error.reason())),
        }
        result
    }

    fn write(&mut self, status: &'static str, n_tokens: Option<u64>, error: Option<&'static str>) {
        self.is_written = true;
        tracing::info!(
            surface = "embeddings",
            status,
            user.id = %self.user,
            llm.provider = self.provider,
            llm.model = self.model,
            llm.tokens_in = n_tokens,
            n_texts = self.n_texts,
            duration_ms = self.clock.now().ms_since(self.started_at),
            client_left = status == "cancelled",
            error,
            "embeddings {status}",
        );
    }
}

impl Drop for EmbeddingLog {
    fn drop(&mut self) {
        if !self.is_written {
            self.write("cancelled", None, None);
        }
    }
}
