//! Calls a model for the memory of a space, in the background: one request, answered by one JSON
//! object.
//!
//! **Invariant:** these calls have permits of their own, so no reply waits for one of them.
//!
//! **Invariant:** the tokens of a call are counted, however the call ends. No transaction is open
//! during a call.

use std::sync::Arc;

use agent::call_limits::CallLimits;
use agent::outcome::FailureCode;
use agent::permits::fair_permits::{FairPermits, PermitOwner};
use agent::usage::UsageTotal;
use base::ids::{ProviderId, SpaceId};
use dashmap::DashMap;
use llm::registry::ProviderKind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use sea_orm::DbErr;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::conversations::token_usage;
use crate::db::connect::Db;
use crate::memories::models::model_setting::MemoryModelSetting;
use crate::providers::json_requests::json_request::{JsonCallError, JsonRequest};
use crate::providers::json_requests::{json_answer, json_request};
use crate::providers::provider_factory::{ProviderError, ProviderFactory};
use crate::providers::{provider, usable_providers};
use crate::spaces::space;

/// How many calls of one provider this node makes at the same time: enough that a slow call does not
/// delay all spaces, few enough that replies remain the main load of the provider.
const MAX_CALLS_PER_PROVIDER: usize = 2;

/// Calls models for memories. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct MemoryModels {
    db: Db,
    providers: ProviderFactory,
    limits: CallLimits,
    permits: Arc<DashMap<ProviderId, FairPermits>>,
    tokens: Family<PurposeLabel, Counter>,
}

/// What the tokens of a call were used for.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PurposeLabel {
    purpose: &'static str,
}

/// A model that a space uses for its memory.
#[derive(Clone, Debug)]
pub struct MemoryModel(provider::Model);

/// Why a model returned no object.
#[derive(Debug, thiserror::Error)]
pub enum MemoryModelError {
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The address or the key of the provider cannot be used.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The call failed. The provider's message is left out, because it may repeat what was sent.
    #[error("the model call failed: {0}")]
    Failed(FailureCode),
    #[error("the model's answer is not a JSON object")]
    InvalidJson,
    /// The space has reached its token limit.
    #[error("the space has reached its token limit")]
    TokenLimit,
    /// The caller canceled the request.
    #[error("the request was canceled")]
    Canceled,
}

impl MemoryModel {
    /// Returns the name of the model.
    pub fn model_name(&self) -> &str {
        &self.0.model
    }

    /// Returns the size of its context window: request and answer together, in tokens.
    pub fn context_tokens(&self) -> i64 {
        self.0.context_tokens()
    }
}

impl MemoryModels {
    /// Creates the caller of a node.
    pub fn new(db: Db, providers: ProviderFactory, limits: CallLimits) -> Self {
        Self {
            db,
            providers,
            limits,
            permits: Arc::default(),
            tokens: Family::default(),
        }
    }

    /// Registers the metric of the tokens.
    pub fn register_metrics(&self, to: &mut Registry) {
        let help = "Tokens of model calls for memories and summaries, by the name of their schema";
        to.register("memory_tokens", help, self.tokens.clone());
    }

    /// Returns the model of a space: the one that its settings name if its provider is enabled,
    /// otherwise that of the default provider. Returns `None` if there is none, if it is the demo
    /// model, which cannot follow instructions, or if the space has reached its token limit.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn find_model(
        &self,
        space: &space::Model,
        setting: Option<&MemoryModelSetting>,
    ) -> Result<Option<MemoryModel>, DbErr> {
        let db = self.db.reader();
        let own = setting.map(|it| it.provider_id);
        let model = setting.and_then(|it| it.model.as_deref());
        let found = usable_providers::find(db, own, model).await?;
        let Some(found) = found.filter(|it| it.kind != ProviderKind::Demo) else {
            return Ok(None);
        };
        let is_at_limit = token_usage::has_reached_limit(db, space, 0).await?;
        Ok((!is_at_limit).then_some(MemoryModel(found)))
    }

    /// Waits for a permit, sends the request, counts its tokens for the space, and returns the object
    /// that the model wrote; the caller validates it.
    ///
    /// # Errors
    /// Returns `TokenLimit` if the space has reached its limit or was deleted, `Canceled` if
    /// `cancel` fired, `InvalidJson`, `Failed` or `Provider` if the model returned no object, and
    /// `Database` when the database fails.
    pub async fn request_json(
        &self,
        model: &MemoryModel,
        space: SpaceId,
        request: JsonRequest,
        cancel: &CancellationToken,
    ) -> Result<Value, MemoryModelError> {
        let permits = self.permits_of(model.0.id);
        let _permit = tokio::select! {
            () = cancel.cancelled() => return Err(MemoryModelError::Canceled),
            permit = permits.acquire(PermitOwner::Space(space)) => permit,
        };
        // Checked after the wait, because other calls may have used the last tokens.
        if self.is_at_limit(space).await? {
            return Err(MemoryModelError::TokenLimit);
        }
        let provider = self.providers.create(&model.0)?;
        let response =
            json_request::send(provider.as_ref(), &model.0, &request, &self.limits, cancel);
        let response = response.await;
        self.count_tokens(space, response.usage, request.schema_name)
            .await;
        let text = response.answer.map_err(MemoryModelError::from)?;
        let object = json_answer::parse_object(&text).map(Value::Object);
        object.ok_or(MemoryModelError::InvalidJson)
    }

    fn permits_of(&self, provider: ProviderId) -> FairPermits {
        let new = || FairPermits::new(MAX_CALLS_PER_PROVIDER);
        self.permits.entry(provider).or_insert_with(new).clone()
    }

    /// Returns whether a space has used up its token limit, or was deleted.
    async fn is_at_limit(&self, id: SpaceId) -> Result<bool, DbErr> {
        let found = token_usage::find_has_reached_limit(self.db.reader(), id, 0).await?;
        Ok(found.unwrap_or(true))
    }

    async fn count_tokens(&self, space: SpaceId, usage: Option<UsageTotal>, purpose: &'static str) {
        let tokens = usage.map_or(0, UsageTotal::total);
        if tokens == 0 {
            return;
        }
        let n = u64::try_from(tokens).unwrap_or_default();
        let label = PurposeLabel { purpose };
        self.tokens.get_or_create(&label).inc_by(n);
        let counting = self.db.write(move |tx| {
            Box::pin(async move { space::add_memory_tokens(tx, space, tokens).await })
        });
        let counted: Result<(), DbErr> = counting.await;
        if let Err(error) = counted {
            tracing::warn!(space.id = %space, %error, "failed to count the tokens of a memory request: {error}");
        }
    }
}

impl From<JsonCallError> for MemoryModelError {
    fn from(error: JsonCallError) -> Self {
        match error {
            JsonCallError::Failed(failure) => {
                tracing::debug!(error = failure.message, "a model call for memories failed");
                Self::Failed(failure.code)
            }
            JsonCallError::Canceled => Self::Canceled,
        }
    }
}
