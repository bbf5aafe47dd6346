//! Compacts a long history: keeps the messages of the client and replaces everything else by a
//! summary that the model writes and that only the same user can send back.
//!
//! **Invariant:** nothing is stored. The summary is returned as an encrypted item.

use agent::call_limits::CallLimits;
use agent::model_call;
use agent::outcome::{CallEnd, FailureCode, ModelOutput};
use agent::permits::fair_permits::PermitOwner;
use base::ids::UserId;
use leased_jobs::lease::CancelHandle;
use responses_api::object_ids;
use responses_api::request::items::item_view::{ItemContent, ItemView, MessageRole};
use responses_api::response::{Compaction, ResponseUsage};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::responses::engine::ResponseEngine;
use crate::responses::error::ResponseEngineError;
use crate::responses::execution::usage;
use crate::responses::input::{history, summary_items};
use crate::responses::preparation;
use crate::responses::preparation::PreparedResponse;
use crate::responses::request::ResponseRequest;
use crate::responses::services::ResponseServices;

/// The longest summary, in bytes. Encrypted, it is still below the size limit of an item.
const MAX_SUMMARY_BYTES: usize = 1024 * 1024;

/// The instruction to the model, after the whole history.
const INSTRUCTIONS: &str = "Summarize everything above for yourself. You will go on from your summary and \
    from the messages of the user, which are kept word for word; your own words, your calls of tools \
    and what came of them will be gone. Keep facts, names, numbers, decisions, what was tried and what \
    came of it, what is open, and what you were about to do. Answer nothing, add nothing, and write \
    nothing but the summary.";

/// A summary and its token usage.
struct Summary {
    text: String,
    usage: Option<ResponseUsage>,
}

impl ResponseEngine {
    /// Compacts the history and input of a request: messages of users and programs are kept as they
    /// are, everything else becomes a summary.
    ///
    /// # Errors
    /// As [`ResponseEngine::create`]. Returns `TooLongForModel` when the history does not fit, and
    /// `Upstream` when the model fails or returns no text.
    pub async fn compact(
        &self,
        user: UserId,
        request: ResponseRequest,
    ) -> Result<Compaction, ResponseEngineError> {
        let (engine, stop) = (self.clone(), CancelHandle::default());
        // A disconnected client stops the model call.
        let _cancel_on_drop = stop.token.clone().drop_guard();
        let work = async move { engine.compact_in_task(user, request, &stop).await };
        let done = self.services.shutdown.spawn(work).await;
        done?
    }

    async fn compact_in_task(
        &self,
        user: UserId,
        request: ResponseRequest,
        stop: &CancelHandle,
    ) -> Result<Compaction, ResponseEngineError> {
        let _permit = self.foreground_permit(user)?;
        let (id, at) = (
            object_ids::generate(object_ids::RESPONSE),
            self.services.clock.now(),
        );
        let _guard = self.services.hold_lease(&id, 0, stop);
        let (items, prepared) = {
            let _creation_permit = self.services.creation_permits.acquire().await.ok();
            self.prepare_compaction(user, request).await?
        };
        let _response_permit = prepared.acquire_response_permit(user)?;
        let summary = summarize(&self.services, user, prepared, stop).await?;
        let mut output: Vec<Value> = items.into_iter().filter(is_message_of_client).collect();
        let cipher = &self.services.models.cipher;
        output.push(summary_items::item(cipher, user, &summary.text));
        let usage = summary.usage.unwrap_or_default();
        Ok(Compaction::new(id, at, output, usage.view()))
    }

    /// Loads the whole history and prepares the call that summarizes it.
    async fn prepare_compaction(
        &self,
        user: UserId,
        mut request: ResponseRequest,
    ) -> Result<(Vec<Value>, PreparedResponse), ResponseEngineError> {
        let db = self.services.db.reader();
        preparation::find_target(&self.services, user, &request.model).await?;
        if let Some(previous) = &request.previous_response_id {
            history::check_previous(db, user, previous).await?;
        }
        history::resolve_references(db, user, &mut request.input).await?;
        let prior = history::list_items(db, request.previous_response_id.as_deref(), None).await?;
        let items = [prior.as_slice(), &request.input].concat();
        let sealer = &self.services.models.cipher;
        let (prior, mut input) = summary_items::expand(sealer, user, prior, request.input)?;
        let content = json!([{ "type": "input_text", "text": INSTRUCTIONS }]);
        input.push(json!({ "type": "message", "role": "user", "content": content }));
        let (model, stored) = (&request.model, &request.stored);
        let parts = &self.services;
        let preparing = preparation::prepare_plain(parts, user, model, stored, prior, input);
        let prepared = preparing.await?;
        Ok((items, prepared))
    }
}

async fn summarize(
    services: &ResponseServices,
    user: UserId,
    prepared: PreparedResponse,
    stop: &CancelHandle,
) -> Result<Summary, ResponseEngineError> {
    let call = prepared.into_call();
    let mut limits = CallLimits {
        max_text_bytes: MAX_SUMMARY_BYTES,
        ..services.settings.call_limits
    };
    let deadline = Instant::now() + limits.total;
    let acquiring = call.calls.call_permits.acquire(PermitOwner::User(user));
    let _permit = tokio::select! {
        () = stop.token.cancelled() => return Err(ResponseEngineError::ServerBusy),
        permit = timeout_at(deadline, acquiring) => permit.map_err(|_| ResponseEngineError::ServerBusy)?,
    };
    limits.total = deadline.saturating_duration_since(Instant::now());
    let (provider, mut sink) = (call.provider.as_ref(), String::new());
    let (trim, token) = (call.trim.clone(), &stop.token);
    let output =
        model_call::complete(provider, &call.request, trim, &limits, &mut sink, token).await;
    require_summary(&output)?;
    let usage = usage::count(&output, &call.request, true).await;
    let text = output.text;
    Ok(Summary { text, usage })
}

fn require_summary(output: &ModelOutput) -> Result<(), ResponseEngineError> {
    match &output.end {
        CallEnd::Answered(_) if !output.text.trim().is_empty() => Ok(()),
        CallEnd::Answered(_) => {
            let message = "The model returned an empty summary.";
            Err(ResponseEngineError::Upstream(message.to_owned()))
        }
        CallEnd::Failed(failure) if failure.code == FailureCode::ContextOverflow => {
            Err(ResponseEngineError::TooLongForModel)
        }
        CallEnd::Failed(failure) => Err(ResponseEngineError::Upstream(failure.message.clone())),
        CallEnd::Canceled => Err(ResponseEngineError::ServerBusy),
    }
}

/// Returns whether an item is kept as it is: messages of users and programs.
fn is_message_of_client(item: &Value) -> bool {
    match ItemView::of(item).content {
        ItemContent::Message(message) => message.role != MessageRole::Assistant,
        _ => false,
    }
}
