//! From a row of `llm_providers` to somebody who answers.

use crate::llm::provider::Provider;
use crate::llm::registry::ProviderKind;
use crate::llm::registry::ProviderSpec;
use crate::llm::registry::Registry;
use crate::llm::registry::RegistryError;
use crate::llm::secret::Secret;
use crate::providers::provider;
use crate::providers::seal::Seal;
use crate::providers::seal::SealError;
use std::sync::Arc;

/// Opens sealed keys and builds providers. Cloning gives another handle on the same parts.
#[derive(Clone)]
pub struct Models {
    registry: Registry,
    seal: Seal,
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
    /// From the makers of both.
    pub fn new(registry: Registry, seal: Seal) -> Self {
        Self { registry, seal }
    }

    /// The seal of this server's keys.
    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    /// The maker of providers.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Who answers for this row.
    ///
    /// # Errors
    /// When the kind is not there yet, the address is refused, or the key cannot be opened.
    pub fn provider(&self, row: &provider::Model) -> Result<Arc<dyn Provider>, ModelError> {
        Ok(self.registry.provider(&self.spec(row)?)?)
    }

    /// What a row says, with its key in the clear.
    ///
    /// # Errors
    /// When the key cannot be opened.
    pub fn spec(&self, row: &provider::Model) -> Result<ProviderSpec, ModelError> {
        let api_key = match &row.api_key {
            Some(sealed) => Some(Secret::new(&self.seal.open(sealed, row.id)?)),
            None => None,
        };
        Ok(ProviderSpec {
            kind: kind(row.kind),
            base_url: row.base_url.clone(),
            api_key,
            model: row.model.clone(),
        })
    }
}

fn kind(kind: provider::Kind) -> ProviderKind {
    match kind {
        provider::Kind::Demo => ProviderKind::Demo,
        provider::Kind::OpenaiCompatible => ProviderKind::OpenaiCompatible,
        provider::Kind::Openai => ProviderKind::Openai,
        provider::Kind::Anthropic => ProviderKind::Anthropic,
        provider::Kind::Gemini => ProviderKind::Gemini,
        provider::Kind::Ollama => ProviderKind::Ollama,
    }
}
