//! The embedding clients of this node, the last used of which are kept with their caches.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::embeddings::breaker::BreakerState;
use crate::embeddings::call_counts::EmbeddingCounts;
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
    counts: Arc<EmbeddingCounts>,
}

/// The circuit breaker of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientBreaker {
    pub kind: ProviderKind,
    pub model: String,
    pub state: BreakerState,
}

/// Contains the kind, because it determines the path below the address.
#[derive(Debug, PartialEq, Eq)]
struct ClientKey {
    model: String,
    kind: ProviderKind,
    base_url: Option<String>,
    api_key: Option<Secret>,
    extra_headers: Vec<(String, Secret)>,
    has_cache: bool,
}

impl ClientKey {
    fn new(spec: &ProviderSpec, has_cache: bool) -> Self {
        Self {
            model: spec.model.clone(),
            kind: spec.kind,
            base_url: spec.base_url.clone(),
            api_key: spec.api_key.clone(),
            extra_headers: spec.extra_headers.clone(),
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
            counts: Arc::default(),
        }
    }

    /// Returns a separate set of clients, which shares only the counts of requests with this one. Its clients
    /// have their own circuit breakers, and do not replace clients of this set.
    pub fn separate(&self) -> Self {
        Self {
            registry: self.registry.clone(),
            clients: Mutex::default(),
            counts: Arc::clone(&self.counts),
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
        let client = EmbeddingClient::new(endpoint, spec.model.clone(), has_cache)?;
        Ok(client.with_counts(Arc::clone(&self.counts)))
    }

    /// Returns the counts of the requests of all clients since the start, including those that test
    /// a model.
    pub fn counts(&self) -> &EmbeddingCounts {
        &self.counts
    }

    /// Returns the circuit breakers of the clients that are kept, the last used one first.
    pub fn list_breakers(&self) -> Vec<ClientBreaker> {
        let clients = self.clients.lock();
        let breakers = clients.iter().map(|(key, client)| ClientBreaker {
            kind: key.kind,
            model: key.model.clone(),
            state: client.breaker_state(),
        });
        breakers.collect()
    }
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
