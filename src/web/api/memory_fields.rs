//! The settings of a space's memory (`settings.memory`) and their validation.

use base::ids::ProviderId;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::accounts::name_schemas::TitleSchema;
use crate::web::api::setting_checks::{invalid_setting, require_model_name, require_range};
use crate::web::error::ApiResult;

/// What a space remembers and recalls. All switches are on by default. A membership has only `learn`
/// and `recall`.
#[derive(Deserialize, ToSchema)]
#[schema(as = MemorySettings)]
pub struct MemoryFields {
    #[serde(rename = "enabled")]
    _enabled: Option<bool>,
    /// Memories are made from messages; in a membership, from those of the member.
    #[serde(rename = "learn")]
    _learn: Option<bool>,
    /// Prompts contain memories; in a membership, those of the texts that are written for the member.
    #[serde(rename = "recall")]
    _recall: Option<bool>,
    /// The maximum number of memories in a prompt; 5 by default.
    #[schema(minimum = 1, maximum = 20)]
    top_k: Option<i64>,
    /// The score from which a memory is recalled; 0.6 by default.
    #[schema(minimum = 0, maximum = 1)]
    threshold: Option<f64>,
    /// The maximum number of tokens of all memories in a prompt; 512 by default.
    #[schema(minimum = 0, maximum = 4_096)]
    token_budget: Option<i64>,
    /// The number of memories beyond which the least valuable are deleted; 100,000 by default.
    #[schema(minimum = 1, maximum = 100_000)]
    max_memories: Option<i64>,
    /// The embedding model of a provider by which memories are found, in addition to the local one.
    /// Null: the one in the settings of the default provider, if there is one.
    embedding: Option<EmbeddingSetting>,
    /// The model that makes memories from messages; null: that of the default provider.
    model: Option<ModelChoice>,
    summaries: Option<SummaryFields>,
}

/// The summaries of the older messages of conversations.
#[derive(Deserialize, ToSchema)]
#[schema(as = SummarySettings)]
struct SummaryFields {
    /// On by default.
    #[serde(rename = "enabled")]
    _enabled: Option<bool>,
    /// The maximum number of messages of a part; 30 by default.
    #[schema(minimum = 10, maximum = 100)]
    chunk_messages: Option<i64>,
    /// The maximum length of the running summary; 600 by default.
    #[schema(minimum = 100, maximum = 2_000)]
    max_tokens: Option<i64>,
    /// The model that writes them; null: that of the default provider.
    model: Option<ModelChoice>,
}

/// An embedding model of a provider.
#[derive(Deserialize, ToSchema)]
struct EmbeddingSetting {
    #[schema(minimum = 1)]
    provider_id: i64,
    #[schema(value_type = TitleSchema)]
    model: String,
}

/// A provider, and a model of it.
#[derive(Deserialize, ToSchema)]
#[schema(as = MemoryModel)]
struct ModelChoice {
    #[serde(rename = "provider_id")]
    _provider_id: ProviderId,
    /// Null: the model in the settings of the provider.
    #[schema(value_type = Option<TitleSchema>)]
    model: Option<String>,
}

impl MemoryFields {
    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// Returns 422 `invalid_value`, naming the setting.
    pub fn validate(self) -> ApiResult<()> {
        require_range("memory.top_k", self.top_k, 1, 20)?;
        require_range("memory.token_budget", self.token_budget, 0, 4_096)?;
        require_range("memory.max_memories", self.max_memories, 1, 100_000)?;
        if self.threshold.is_some_and(|it| !(0.0..=1.0).contains(&it)) {
            let message = "Must be between 0 and 1.".to_owned();
            return Err(invalid_setting("memory.threshold", message));
        }
        if let Some(it) = self.embedding {
            let provider = Some(it.provider_id);
            require_range("memory.embedding.provider_id", provider, 1, i64::MAX)?;
            require_model_name("memory.embedding.model", &it.model)?;
        }
        require_model("memory.model", self.model)?;
        if let Some(it) = self.summaries {
            let chunk = it.chunk_messages;
            require_range("memory.summaries.chunk_messages", chunk, 10, 100)?;
            require_range("memory.summaries.max_tokens", it.max_tokens, 100, 2_000)?;
            require_model("memory.summaries.model", it.model)?;
        }
        Ok(())
    }
}

fn require_model(name: &str, choice: Option<ModelChoice>) -> ApiResult<()> {
    match choice.and_then(|it| it.model) {
        Some(model) => require_model_name(&format!("{name}.model"), &model),
        None => Ok(()),
    }
}
