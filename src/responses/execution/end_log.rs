//! Writes the log line about the end of a response.
//!
//! **Invariant:** exactly one line for each response: written by the task that brought it into its
//! final state, or by `finalize` for a response that no task of this node runs.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::response::ResponseState;
use sea_orm::ActiveEnum;

use crate::responses::execution::speaker_call::SpeakerCall;
use crate::responses::store::response;

/// What the line states besides the final state.
pub struct EndLog {
    pub id: String,
    pub user: UserId,
    /// The node that writes the line.
    pub node: Arc<str>,
    pub is_background: bool,
    pub created_at: Timestamp,
    /// `None` if it was never claimed.
    pub started_at: Option<Timestamp>,
    /// The provider and the model of the first speaker; `None` if this node has called none.
    pub model: Option<(String, String)>,
}

impl EndLog {
    /// Returns the line of a response with a waiting client, which starts at once.
    pub fn foreground(id: &str, user: UserId, node: &Arc<str>, now: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            user,
            node: node.clone(),
            is_background: false,
            created_at: now,
            started_at: Some(now),
            model: None,
        }
    }

    /// Returns the line of a stored response.
    pub fn from_row(row: &response::Model, node: &Arc<str>) -> Self {
        Self {
            id: row.id.clone(),
            user: row.user_id,
            node: node.clone(),
            is_background: row.background,
            created_at: row.created_at,
            started_at: row.started_at,
            model: None,
        }
    }

    /// Adds the model of the first call.
    pub fn set_model(&mut self, call: &SpeakerCall) {
        self.model = Some((call.provider_name.clone(), call.request.model.clone()));
    }

    /// Writes the line of a response that has ended in this state.
    pub fn write(&self, state: &ResponseState) {
        let status = state.status.to_value();
        let started_at = self.started_at.or(state.ended_at);
        let queue_wait = started_at.map(|it| it.ms_since(self.created_at));
        let began_at = self.started_at.unwrap_or(self.created_at);
        tracing::info!(
            response.id = %self.id,
            response.status = status,
            response.reason = state.incomplete_reason,
            user.id = %self.user,
            llm.provider = self.model.as_ref().map(|it| it.0.as_str()),
            llm.model = self.model.as_ref().map(|it| it.1.as_str()),
            llm.tokens_in = state.usage.map(|it| it.input_tokens),
            llm.tokens_out = state.usage.map(|it| it.output_tokens),
            queue_wait_ms = queue_wait.filter(|_| self.is_background),
            duration_ms = state.ended_at.map(|it| it.ms_since(began_at)),
            node.id = %self.node,
            error = state.error.as_ref().map(|it| it.code.as_str()),
            "response {} {status}",
            self.id,
        );
    }
}
