//! Looks for servers of models on this machine, at the ports on which they usually listen.
//!
//! The calls go the one way out, so where private addresses may not be called nothing is found.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use crate::llm::model_list;
use crate::llm::provider_options::ProviderOptions;
use crate::llm::registry::{ProviderKind, ProviderRegistry, ProviderSpec};

/// A server of this machine that lives answers at once; somebody is waiting in front of a button.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Where a server of models may be.
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

/// The usual places but our own port: whoever listens there are we.
pub fn candidate_addresses(own_port: u16) -> Vec<ServerAddress> {
    let addresses = DEFAULT_ADDRESSES.into_iter();
    addresses.filter(|it| it.port != own_port).collect()
}

/// A server that was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredServer {
    pub name: &'static str,
    pub kind: ProviderKind,
    pub base_url: String,
    pub models: Vec<String>,
}

impl ServerAddress {
    /// A place at this port.
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

/// Who answers at these places with a list of models, all asked at once.
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
    };
    let endpoint = registry.endpoint(&spec).ok()?;
    let models = timeout(TIMEOUT, model_list::list_models(&endpoint)).await;
    Some(DiscoveredServer {
        name: address.name,
        kind: address.kind,
        base_url,
        models: models.ok()?.ok()?,
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
