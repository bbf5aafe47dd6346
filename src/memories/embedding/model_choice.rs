//! Chooses the embedding model of a space: the one in its settings, otherwise the one in the settings
//! of the default provider, otherwise only the local model.

use std::sync::Arc;
use std::time::Duration;

use base::ids::ProviderId;
use llm::embeddings::client::EmbeddingClient;
use llm::embeddings::options::EmbeddingOptions;
use sea_orm::{ConnectionTrait, DbErr, EntityTrait};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::memories::embedding_model;
use crate::providers::provider;
use crate::providers::provider_factory::{ProviderError, ProviderFactory};

/// The cosines of a provider's model that count as scores of 0 and 1.
pub const COSINE_RANGE: (f32, f32) = (0.0, 1.0);

/// An embedding model of a provider.
#[derive(Clone, Debug)]
pub struct EmbeddingChoice {
    pub provider: provider::Model,
    pub model: String,
}

/// The providers of the installation, loaded once to choose the models of several spaces.
#[derive(Clone, Debug)]
pub struct EmbeddingProviders(Vec<provider::Model>);

impl EmbeddingProviders {
    /// Loads all providers.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load(db: &impl ConnectionTrait) -> Result<Self, DbErr> {
        Ok(Self(provider::Entity::find().all(db).await?))
    }

    /// Returns the model for a space with these settings; see [`EmbeddingChoice::load`].
    pub fn choose(&self, settings: &Value) -> Option<EmbeddingChoice> {
        match chosen(settings) {
            Some((id, model)) => {
                let found = self.0.iter().find(|it| it.id == id);
                EmbeddingChoice::new(found?.clone(), model)
            }
            None => {
                let default = self.0.iter().find(|it| it.is_default && !it.disabled);
                EmbeddingChoice::of_provider(default?.clone())
            }
        }
    }
}

/// Returns the provider and the model in the settings of a space.
fn chosen(settings: &Value) -> Option<(ProviderId, String)> {
    let chosen = &settings["memory"]["embedding"];
    let model = chosen["model"].as_str()?.trim();
    Some((
        ProviderId(chosen["provider_id"].as_i64()?),
        model.to_owned(),
    ))
}

impl EmbeddingChoice {
    /// Returns a model of a provider; `None` if the API of the provider has no embeddings.
    pub fn new(provider: provider::Model, model: String) -> Option<Self> {
        let can_embed = provider.kind.has_embeddings() && !model.is_empty();
        can_embed.then_some(Self { provider, model })
    }

    /// Returns the model that the settings of a provider name.
    pub fn of_provider(provider: provider::Model) -> Option<Self> {
        let model = provider.settings["embedding_model"].as_str()?;
        let model = model.trim().to_owned();
        Self::new(provider, model)
    }

    /// Returns the model for a space with these settings. `None`: only the local model, also if the
    /// provider in the settings was deleted.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load(db: &impl ConnectionTrait, settings: &Value) -> Result<Option<Self>, DbErr> {
        match chosen(settings) {
            Some((id, model)) => {
                let found = provider::find(db, id).await?;
                Ok(found.and_then(|it| Self::new(it, model)))
            }
            None => {
                let default = provider::find_default(db).await?;
                Ok(default.and_then(Self::of_provider))
            }
        }
    }

    /// Returns the hash of the address, which distinguishes models with the same name. The kind
    /// determines the path below the address.
    pub fn base_url_hash(&self) -> String {
        let given = self.provider.base_url.as_deref().map(str::trim);
        let given = given.filter(|it| !it.is_empty());
        let address = given.or(self.provider.kind.default_base_url());
        let address = address.unwrap_or_default().trim_end_matches('/');
        let identity = format!("{} {address}", self.provider.kind);
        hex::encode(Sha256::digest(identity.as_bytes()))
    }

    /// Returns whether the vectors of this row come from this model.
    pub fn fits(&self, row: &embedding_model::Model) -> bool {
        let dimensions = usize::try_from(row.dimensions).ok();
        row.name == self.model
            && row.base_url_hash == self.base_url_hash()
            && self
                .requested_dimensions()
                .is_none_or(|it| Some(it) == dimensions)
    }

    /// Returns whether the provider must not be called now.
    pub fn is_paused(&self) -> bool {
        self.provider.disabled || self.timeout_s() == Some(0.0)
    }

    /// Returns the options for a query, which waits at most `limit`; `stored_dimensions` is the number of
    /// dimensions of the vectors with which it is compared, if it is known.
    pub fn read_options(
        &self,
        limit: Duration,
        stored_dimensions: Option<usize>,
    ) -> EmbeddingOptions {
        let timeout_s = self.timeout_s().unwrap_or(f64::INFINITY);
        EmbeddingOptions {
            timeout_s: Some(timeout_s.min(limit.as_secs_f64())),
            // The reply of a run waits for the query.
            max_retries: Some(0),
            stored_dimensions,
            ..self.write_options()
        }
    }

    /// Returns the options for texts that are stored. The dimensions are not compared with those of
    /// stored vectors, because different dimensions mean another model.
    pub fn write_options(&self) -> EmbeddingOptions {
        let max_retries = self.provider.settings["embedding_max_retries"].as_u64();
        EmbeddingOptions {
            timeout_s: self.timeout_s(),
            max_retries: max_retries.and_then(|it| u32::try_from(it).ok()),
            requested_dimensions: self.requested_dimensions(),
            stored_dimensions: None,
        }
    }

    /// Returns the client of this model, with its cache and circuit breaker.
    ///
    /// # Errors
    /// Returns `Registry` when the address is rejected, and `Decrypt` when the key cannot be decrypted.
    pub fn client(&self, models: &ProviderFactory) -> Result<Arc<EmbeddingClient>, ProviderError> {
        let spec = self.at_model().spec(&models.cipher)?;
        Ok(models.embeddings.client(&spec, self.has_cache())?)
    }

    /// Returns the client if it was used recently; see [`EmbeddingChoice::client`].
    pub fn known_client(&self, models: &ProviderFactory) -> Option<Arc<EmbeddingClient>> {
        let spec = self.at_model().spec(&models.cipher).ok()?;
        models.embeddings.find(&spec, self.has_cache())
    }

    /// Returns a client that is not shared.
    ///
    /// # Errors
    /// As [`EmbeddingChoice::client`].
    pub fn new_client(&self, models: &ProviderFactory) -> Result<EmbeddingClient, ProviderError> {
        let spec = self.at_model().spec(&models.cipher)?;
        Ok(models.embeddings.create(&spec, false)?)
    }

    fn at_model(&self) -> provider::Model {
        provider::Model {
            model: self.model.clone(),
            ..self.provider.clone()
        }
    }

    fn timeout_s(&self) -> Option<f64> {
        self.provider.settings["embedding_timeout_s"].as_f64()
    }

    fn requested_dimensions(&self) -> Option<usize> {
        let dimensions = self.provider.settings["embedding_dimensions"].as_u64()?;
        usize::try_from(dimensions).ok()
    }

    fn has_cache(&self) -> bool {
        let setting = self.provider.settings["embedding_cache"].as_bool();
        setting.unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::clock::Timestamp;
    use base::ids::{EmbeddingModelId, ProviderId};
    use llm::registry::ProviderKind;
    use serde_json::{Value, json};

    use super::{EmbeddingChoice, EmbeddingProviders};
    use crate::memories::embedding_model;
    use crate::providers::provider;

    fn provider(id: i64, kind: ProviderKind, settings: Value) -> provider::Model {
        provider::Model {
            id: ProviderId(id),
            name: "P".to_owned(),
            kind,
            base_url: None,
            api_key: None,
            model: "chat".to_owned(),
            is_default: id == 1,
            disabled: false,
            settings,
            created_at: Timestamp(0),
        }
    }

    fn choice(settings: Value) -> EmbeddingChoice {
        let provider = provider(1, ProviderKind::Openai, settings);
        EmbeddingChoice::new(provider, "m".to_owned()).unwrap()
    }

    #[test]
    fn the_model_of_the_space_precedes_that_of_the_default_provider() {
        let providers = EmbeddingProviders(vec![
            provider(1, ProviderKind::Openai, json!({"embedding_model": "usual"})),
            provider(2, ProviderKind::Ollama, json!({"embedding_model": "other"})),
            provider(3, ProviderKind::Anthropic, json!({})),
        ]);
        let choose = |embedding: Value| {
            let found = providers.choose(&json!({"memory": {"embedding": embedding}}));
            found.map(|it| (it.provider.id.0, it.model))
        };

        assert_eq!(choose(json!(null)), Some((1, "usual".to_owned())));
        let own = json!({"provider_id": 2, "model": "own"});
        assert_eq!(choose(own), Some((2, "own".to_owned())));
        let without_embeddings = json!({"provider_id": 3, "model": "own"});
        assert_eq!(choose(without_embeddings), None);
        assert_eq!(choose(json!({"provider_id": 9, "model": "own"})), None);
    }

    #[test]
    fn vectors_belong_to_a_model_of_the_same_name_address_and_dimensions() {
        let row = |change: fn(&mut embedding_model::Model)| {
            let mut row = embedding_model::Model {
                id: EmbeddingModelId(1),
                name: "m".to_owned(),
                base_url_hash: choice(json!({})).base_url_hash(),
                dimensions: 3,
                score_low: 0.0,
                score_high: 1.0,
            };
            change(&mut row);
            row
        };

        assert!(choice(json!({})).fits(&row(|_| {})));
        assert!(!choice(json!({})).fits(&row(|it| it.name = "n".to_owned())));
        assert!(!choice(json!({})).fits(&row(|it| it.base_url_hash.clear())));
        assert!(!choice(json!({"embedding_dimensions": 4})).fits(&row(|_| {})));
    }

    #[test]
    fn a_query_waits_no_longer_than_its_limit_and_zero_pauses_the_provider() {
        let timeout_s = |settings: Value| {
            let options = choice(settings).read_options(Duration::from_secs(2), Some(3));
            assert_eq!(options.max_retries, Some(0));
            options.timeout_s
        };

        assert_eq!(timeout_s(json!({})), Some(2.0));
        assert_eq!(timeout_s(json!({"embedding_timeout_s": 30})), Some(2.0));
        assert_eq!(timeout_s(json!({"embedding_timeout_s": 0.5})), Some(0.5));
        assert!(choice(json!({"embedding_timeout_s": 0})).is_paused());
        assert!(!choice(json!({})).is_paused());
        let options = choice(json!({"embedding_max_retries": 0})).write_options();
        assert_eq!(options.max_retries, Some(0));
    }
}
