//! The embedding clients of this node, the last used of which are kept with their caches.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::embeddings::client::EmbeddingClient;
use crate::registry::{ProviderKind, ProviderRegistry, ProviderSpec, RegistryError};
use crate::secret::Secret;

/// Maximum number of clients. Their caches use up to 100 MiB together, with 3,072 dimensions.
const MAX_CLIENTS: usize = 8;

/// Creates and keeps clients.
///
/// **Invariant:** two calls get the same client only if model, address, key and cache flag are the
/// same; otherwise vectors of one could be used for the other.
#[derive(Debug)]
pub struct EmbeddingClients {
    registry: ProviderRegistry,
    /// The last used one first.
    clients: Mutex<Vec<(ClientKey, Arc<EmbeddingClient>)>>,
}

/// Contains the kind, because it determines the path below the address.
#[derive(Debug, PartialEq, Eq)]
struct ClientKey {
    model: String,
    kind: ProviderKind,
    base_url: Option<String>,
    api_key: Option<Secret>,
    has_cache: bool,
}

impl ClientKey {
    fn new(spec: &ProviderSpec, has_cache: bool) -> Self {
        Self {
            model: spec.model.clone(),
            kind: spec.kind,
            base_url: spec.base_url.clone(),
            api_key: spec.api_key.clone(),
            has_cache,
        }
    }
}

impl EmbeddingClients {
    /// Returns clients that call the providers of this registry.
    pub fn new(registry: ProviderRegistry) -> Self {
        Self {
            registry,
            clients: Mutex::default(),
        }
    }

    /// Returns the client for the model of these settings, whose other options do not matter.
    /// Beyond eight clients, the one that was not requested for the longest time is replaced; calls
    /// that use it are not interrupted.
    ///
    /// # Errors
    /// Returns the error of [`ProviderRegistry::endpoint`], and `Unusable` when the provider's API
    /// has no embeddings.
    pub fn client(
        &self,
        spec: &ProviderSpec,
        has_cache: bool,
    ) -> Result<Arc<EmbeddingClient>, RegistryError> {
        let key = ClientKey::new(spec, has_cache);
        let mut clients = self.clients.lock();
        if let Some(at) = clients.iter().position(|(known, _)| *known == key) {
            clients[..=at].rotate_right(1);
            return Ok(Arc::clone(&clients[0].1));
        }
        let client = Arc::new(self.create(spec, has_cache)?);
        clients.truncate(MAX_CLIENTS - 1);
        clients.insert(0, (key, Arc::clone(&client)));
        Ok(client)
    }

    /// Returns the client for the model of these settings, if it was used recently. Other clients are
    /// not affected.
    pub fn find(&self, spec: &ProviderSpec, has_cache: bool) -> Option<Arc<EmbeddingClient>> {
        let key = ClientKey::new(spec, has_cache);
        let clients = self.clients.lock();
        let found = clients.iter().find(|(known, _)| *known == key);
        found.map(|(_, it)| Arc::clone(it))
    }

    /// Creates a client that is not shared, for example to test settings: its circuit breaker is
    /// closed, and its outcomes affect no other client.
    ///
    /// # Errors
    /// As [`EmbeddingClients::client`].
    pub fn create(
        &self,
        spec: &ProviderSpec,
        has_cache: bool,
    ) -> Result<EmbeddingClient, RegistryError> {
        let endpoint = self.registry.endpoint(spec)?;
        Ok(EmbeddingClient::new(
            endpoint,
            spec.model.clone(),
            has_cache,
        )?)
    }

    /// Returns the clients, for example for metrics of their circuit breakers.
    pub fn all(&self) -> Vec<Arc<EmbeddingClient>> {
        let clients = self.clients.lock();
        clients.iter().map(|(_, it)| Arc::clone(it)).collect()
    }
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
