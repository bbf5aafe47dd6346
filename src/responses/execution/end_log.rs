//! Writes the log line about the end of a response or a chat completion.
//!
//! **Invariant:** exactly one line for each call: written by the task that brought it into its
//! final state, or by `finalize` for a response that no task of this node runs.

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::response::ResponseState;
use sea_orm::ActiveEnum;
use tokio::time::Instant;

use crate::responses::execution::speaker_call::SpeakerCall;
use crate::responses::request::ResponseRequest;
use crate::responses::store::response;
use crate::responses::telemetry::call_log::{CallLog, CallSurface};
use crate::responses::telemetry::call_metrics::CallMetrics;
use crate::responses::telemetry::call_origin::CallOrigin;
use crate::responses::telemetry::ended_call::{CallCounts, EndedCall, SharedEnd};

/// What the line states besides the final state.
pub struct EndLog {
    pub id: String,
    pub user: UserId,
    pub metrics: CallMetrics,
    pub created_at: Timestamp,
    /// `None` if it was never claimed.
    pub started_at: Option<Timestamp>,
    pub surface: CallSurface,
    pub origin: CallOrigin,
    /// The model as the client named it.
    pub model: String,
    /// The provider of the first speaker; `None` if this node has called none.
    pub provider: Option<String>,
    pub is_stored: bool,
    /// Unknown for a background response.
    pub is_streamed: Option<bool>,
    pub is_background: bool,
    pub attempt: i64,
    pub counts: CallCounts,
    /// `None` if one task executes the whole call.
    pub shared_end: Option<SharedEnd>,
    /// When this node started to execute it.
    began_at: Instant,
    first_token_ms: Option<i64>,
}

impl EndLog {
    /// Returns the line of a response that starts now.
    pub fn new(id: &str, user: UserId, metrics: &CallMetrics, now: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            user,
            metrics: metrics.clone(),
            created_at: now,
            started_at: Some(now),
            surface: CallSurface::Responses,
            origin: CallOrigin::default(),
            model: String::new(),
            provider: None,
            is_stored: false,
            is_streamed: None,
            is_background: false,
            attempt: 1,
            counts: CallCounts::default(),
            shared_end: None,
            began_at: Instant::now(),
            first_token_ms: None,
        }
    }

    /// Adds the values of the request.
    pub fn with_request(self, request: &ResponseRequest) -> Self {
        Self {
            origin: request.origin.clone(),
            model: request.model.clone(),
            is_stored: request.store,
            is_streamed: Some(request.stream),
            ..self
        }
    }

    /// Sets the API that was called.
    pub fn with_surface(self, surface: CallSurface) -> Self {
        Self { surface, ..self }
    }

    /// Sets the end that the other tasks of the same call share.
    pub fn with_shared_end(self, shared_end: SharedEnd) -> Self {
        Self {
            shared_end: Some(shared_end),
            ..self
        }
    }

    /// Returns the line of a stored response.
    pub fn from_row(row: &response::Model, metrics: &CallMetrics) -> Self {
        Self {
            started_at: row.started_at,
            model: row.model.clone(),
            is_stored: true,
            is_background: row.background,
            attempt: row.attempt,
            ..Self::new(&row.id, row.user_id, metrics, row.created_at)
        }
    }

    /// Adds the provider of the first call.
    pub fn set_provider(&mut self, call: &SpeakerCall) {
        self.provider = Some(call.provider_name.clone());
    }

    /// Records the time of the first output; later calls have no effect.
    pub fn mark_output(&mut self) {
        let elapsed = self.began_at.elapsed().as_millis();
        self.first_token_ms
            .get_or_insert(i64::try_from(elapsed).unwrap_or(i64::MAX));
    }

    /// Writes the line of a response that has ended in this state, and records its metrics. Of several tasks
    /// that execute one call, the last one writes the line.
    pub fn write(&self, state: &ResponseState, has_client_left: bool) {
        let began_at = self.started_at.unwrap_or(self.created_at);
        let error = state.error.as_ref().map(|it| it.code.clone());
        let usage = state.usage.map(|it| it.view());
        let ended = EndedCall {
            status: state.status,
            reason: state.incomplete_reason.clone().or(error),
            duration_ms: state.ended_at.map(|it| it.ms_since(began_at)),
            first_token_ms: self.first_token_ms,
            input_tokens: usage.map(|it| it.input_tokens),
            cached_tokens: usage.map(|it| it.input_tokens_details.cached_tokens),
            output_tokens: usage.map(|it| it.output_tokens),
            counts: self.counts,
            has_client_left,
        };
        let ended = match &self.shared_end {
            Some(shared) => shared.add(ended),
            None => Some(ended),
        };
        if let Some(ended) = ended {
            self.write_line(&ended);
        }
    }

    fn write_line(&self, ended: &EndedCall) {
        self.metrics.end(&CallLog {
            origin: &self.origin,
            surface: self.surface,
            id: Some(&self.id),
            user: self.user,
            model: &self.model,
            provider: self.provider.as_deref(),
            status: &ended.status.to_value(),
            reason: ended.reason.as_deref(),
            is_stored: self.is_stored,
            is_streamed: self.is_streamed,
            is_background: self.is_background,
            attempt: self.attempt,
            duration_ms: ended.duration_ms,
            first_token_ms: ended.first_token_ms,
            input_tokens: ended.input_tokens,
            cached_tokens: ended.cached_tokens,
            output_tokens: ended.output_tokens,
            n_model_calls: ended.counts.n_model_calls,
            n_tool_calls: ended.counts.n_tool_calls,
            has_client_left: ended.has_client_left,
        });
    }
}
