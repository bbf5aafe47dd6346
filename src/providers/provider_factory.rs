//! Builds the callable provider of a row in `llm_providers`: decrypts its key, and wraps it so that
//! its calls are counted.

use std::sync::Arc;

use llm::embeddings::clients::EmbeddingClients;
use llm::provider::Provider;
use llm::registry::{ProviderRegistry, RegistryError};

use crate::providers::call_metrics::ProviderMetrics;
use crate::providers::detected::token_calibration::TokenCalibration;
use crate::providers::encryption::{DecryptError, SecretCipher};
use crate::providers::provider;

/// Decrypts keys and builds providers. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ProviderFactory {
    pub registry: ProviderRegistry,
    pub cipher: SecretCipher,
    /// Calibrates the token counts of models on this node.
    pub token_calibration: TokenCalibration,
    /// Counts the calls of the built providers.
    pub metrics: ProviderMetrics,
    /// The embedding clients of this node, with their caches and circuit breakers.
    pub embeddings: Arc<EmbeddingClients>,
    /// The embedding clients for programs. They are separate, so that a program whose requests
    /// fail does not open a circuit breaker of the memories.
    pub relayed_embeddings: Arc<EmbeddingClients>,
}

/// Why no provider can be built from a row.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
}

impl ProviderFactory {
    /// Creates a factory without any calls counted.
    pub fn new(registry: ProviderRegistry, cipher: SecretCipher) -> Self {
        let embeddings = EmbeddingClients::new(registry.clone());
        Self {
            relayed_embeddings: Arc::new(embeddings.separate()),
            embeddings: Arc::new(embeddings),
            registry,
            cipher,
            token_calibration: TokenCalibration::default(),
            metrics: ProviderMetrics::default(),
        }
    }

    /// Builds the provider of a row.
    ///
    /// # Errors
    /// Returns `Registry` when the address is rejected, and `Decrypt` when the key cannot be
    /// decrypted.
    pub fn create(&self, row: &provider::Model) -> Result<Arc<dyn Provider>, ProviderError> {
        let provider = self.registry.provider(&row.spec(&self.cipher)?)?;
        Ok(self.metrics.wrap(provider))
    }
}
