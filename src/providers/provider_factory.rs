//! From a row of `llm_providers` to somebody who answers.

use std::sync::Arc;

use crate::llm::provider::Provider;
use crate::llm::registry::{ProviderRegistry, RegistryError};
use crate::providers::call_metrics::ProviderMetrics;
use crate::providers::encryption::{DecryptError, SecretCipher};
use crate::providers::provider;

/// Opens sealed keys and builds providers. Cloning gives another handle on the same parts.
#[derive(Clone)]
pub struct ProviderFactory {
    pub registry: ProviderRegistry,
    pub cipher: SecretCipher,
    /// Counts every call of whoever answers.
    pub metrics: ProviderMetrics,
}

/// Why a row leads to nobody.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
}

impl ProviderFactory {
    /// Who answers for this row.
    ///
    /// # Errors
    /// When the address is refused, or the key cannot be opened.
    pub fn create(&self, row: &provider::Model) -> Result<Arc<dyn Provider>, ProviderError> {
        let provider = self.registry.provider(&row.spec(&self.cipher)?)?;
        Ok(self.metrics.wrap(provider))
    }
}
