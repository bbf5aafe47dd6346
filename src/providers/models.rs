//! From a row of `llm_providers` to somebody who answers.

use crate::llm::provider::Provider;
use crate::llm::registry::ProviderRegistry;
use crate::llm::registry::RegistryError;
use crate::providers::meter::Meter;
use crate::providers::provider;
use crate::providers::seal::SealError;
use crate::providers::seal::Sealer;
use std::sync::Arc;

/// Opens sealed keys and builds providers. Cloning gives another handle on the same parts.
#[derive(Clone)]
pub struct Models {
    pub registry: ProviderRegistry,
    pub sealer: Sealer,
    /// Counts every call of whoever answers.
    pub meter: Meter,
}

/// Why a row leads to nobody.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl Models {
    /// Who answers for this row.
    ///
    /// # Errors
    /// When the address is refused, or the key cannot be opened.
    pub fn provider(&self, row: &provider::Model) -> Result<Arc<dyn Provider>, ModelError> {
        let provider = self.registry.provider(&row.spec(&self.sealer)?)?;
        Ok(self.meter.counts(provider))
    }
}
