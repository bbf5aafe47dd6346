//! Finds model servers on this machine by probing their usual ports.
//!
//! The calls use the outbound client, so nothing is found if private addresses are not allowed.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use crate::model_list;
use crate::model_list::ListedModel;
use crate::provider_options::ProviderOptions;
use crate::registry::{ProviderKind, ProviderRegistry, ProviderSpec};

/// A running local server responds quickly, and a user waits for the result.
const TIMEOUT: Duration = Duration::from_secs(2);

/// An address at which a model server may listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    pub name: &'static str,
    pub kind: ProviderKind,
    pub port: u16,
}

const DEFAULT_ADDRESSES: [ServerAddress; 4] = [
    ServerAddress::new("Ollama", ProviderKind::Ollama, 11_434),
    ServerAddress::new("LM Studio", ProviderKind::OpenaiCompatible, 1_234),
    ServerAddress::new("llama.cpp", ProviderKind::OpenaiCompatible, 8_080),
    ServerAddress::new("KoboldCpp", ProviderKind::OpenaiCompatible, 5_001),
];

/// Returns the usual addresses except our own port, at which this server itself listens.
pub fn candidate_addresses(own_port: u16) -> Vec<ServerAddress> {
    let addresses = DEFAULT_ADDRESSES.into_iter();
    addresses.filter(|it| it.port != own_port).collect()
}

/// A model server that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredServer {
    pub name: &'static str,
    pub kind: ProviderKind,
    pub base_url: String,
    pub models: Vec<ListedModel>,
}

impl ServerAddress {
    /// Returns the address with this port.
    pub const fn new(name: &'static str, kind: ProviderKind, port: u16) -> Self {
        Self { name, kind, port }
    }

    fn base_url(&self) -> String {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        match self.kind {
            ProviderKind::Ollama => format!("http://{address}"),
            _ => format!("http://{address}/v1"),
        }
    }
}

/// Returns the servers that respond with a list of models; all addresses are probed concurrently.
pub async fn probe_all(
    registry: &ProviderRegistry,
    addresses: &[ServerAddress],
) -> Vec<DiscoveredServer> {
    let all = join_all(addresses.iter().map(|it| probe(registry, it))).await;
    all.into_iter().flatten().collect()
}

async fn probe(registry: &ProviderRegistry, address: &ServerAddress) -> Option<DiscoveredServer> {
    let base_url = address.base_url();
    let spec = ProviderSpec {
        kind: address.kind,
        base_url: Some(base_url.clone()),
        api_key: None,
        model: String::new(),
        options: ProviderOptions::default(),
        extra_headers: Vec::new(),
    };
    let endpoint = registry.endpoint(&spec).ok()?;
    let models = timeout(TIMEOUT, model_list::list_models(&endpoint)).await;
    Some(DiscoveredServer {
        name: address.name,
        kind: address.kind,
        base_url,
        models: models.ok()?.ok()?.models,
    })
}

#[cfg(test)]
mod tests {
    use super::candidate_addresses;

    #[test]
    fn default_ports_are_probed_except_our_own() {
        let ports =
            |own| -> Vec<u16> { candidate_addresses(own).iter().map(|it| it.port).collect() };

        assert_eq!(ports(3_000), [11_434, 1_234, 8_080, 5_001]);
        assert_eq!(ports(8_080), [11_434, 1_234, 5_001]);
    }
}
