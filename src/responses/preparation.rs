//! What a turn needs before its model can speak: whom to ask, and what to say.

use crate::llm::provider::Provider;
use crate::llm::request::Request;
use crate::llm::tokens;
use crate::providers::provider;
use crate::responses::models;
use crate::responses::parts::Parts;
use crate::responses::prompt;
use crate::responses::refusal::Refusal;
use crate::responses::spec::Kept;
use crate::responses::stop::Stop;
use crate::responses::turn::Stage;
use crate::responses::turn::Turn;
use sea_orm::DbErr;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A call that can be made.
pub struct Prepared {
    /// How long its conversation was when it was read.
    pub seen: Option<i64>,
    row: provider::Model,
    provider: Arc<dyn Provider>,
    request: Request,
}

/// Prepares the call of a response: `prior` is what it goes on from, `input` is new.
///
/// # Errors
/// There is no such model, or it is too much for its window.
pub async fn prepare(
    parts: &Parts,
    model: &str,
    kept: &Kept,
    prior: Vec<Value>,
    input: Vec<Value>,
) -> Result<Prepared, Refusal> {
    let row = find(parts, model).await?;
    let provider = parts.models.provider(&row).map_err(|error| {
        tracing::warn!(%error, "provider {} cannot be asked: {error}", row.id);
        Refusal::Unusable
    })?;
    let window = row.settings["context_tokens"].as_i64().filter(|it| *it > 0);
    let reserve = kept.sampling.max_output_tokens.map_or(0, i64::from);
    let (instructions, truncates) = (kept.instructions.clone(), kept.truncates);
    // Counting is work for a processor, and the items may be many.
    let fitting = parts.shutdown.main().spawn_blocking(move || {
        let entries = prompt::entries(instructions.as_deref(), &prior, &input);
        prompt::fit(entries, window, reserve, truncates, &tokens::count)
    });
    let fitted = fitting
        .await
        .map_err(|_| DbErr::Custom("the prompt could not be built".to_owned()))?;
    let messages = fitted.map_err(|too_long| Refusal::TooLong {
        n_tokens: too_long.n_tokens,
        window: window.unwrap_or_default(),
    })?;
    let request = Request {
        messages,
        format: kept.format.clone(),
        context_tokens: window.and_then(|it| u32::try_from(it).ok()),
        seed: rand::random(),
        ..kept.sampling.request(&row.model)
    };
    Ok(Prepared {
        seen: None,
        row,
        provider,
        request,
    })
}

/// Who answers for this name.
///
/// # Errors
/// Nobody does.
pub async fn find(parts: &Parts, model: &str) -> Result<provider::Model, Refusal> {
    let found = models::find(parts.db.reader(), model).await?;
    found.ok_or_else(|| Refusal::ModelNotFound(model.to_owned()))
}

impl Prepared {
    /// What will be sent.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The call alone: who is asked, what, and how many calls there may be at once.
    pub fn call(self, parts: &Parts) -> (Arc<dyn Provider>, Request, Arc<Semaphore>) {
        let calls = parts.calls(self.row.id);
        (self.provider, self.request, calls)
    }

    /// The turn that makes the call.
    pub fn turn(self, parts: &Parts, stop: Stop, stage: Stage) -> Turn {
        Turn {
            calls: parts.calls(self.row.id),
            provider: self.provider,
            request: self.request,
            watches: parts.settings.watches,
            stop,
            clock: parts.clock.clone(),
            stage,
        }
    }
}
