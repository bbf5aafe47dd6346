//! Looks for servers of models on this machine, at the ports on which they usually listen.
//!
//! The calls go the one way out, so where private addresses may not be called nothing is found.

use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use crate::llm::catalog;
use crate::llm::registry::ProviderKind;
use crate::llm::registry::ProviderSpec;
use crate::llm::registry::Registry;
use crate::llm::tuning::Tuning;

/// A server of this machine that lives answers at once; somebody is waiting in front of a button.
const LIMIT: Duration = Duration::from_secs(2);

/// Where a server of models may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub name: &'static str,
    pub kind: ProviderKind,
    pub port: u16,
}

const USUAL_PLACES: [Place; 4] = [
    Place::new("Ollama", ProviderKind::Ollama, 11_434),
    Place::new("LM Studio", ProviderKind::OpenaiCompatible, 1_234),
    Place::new("llama.cpp", ProviderKind::OpenaiCompatible, 8_080),
    Place::new("KoboldCpp", ProviderKind::OpenaiCompatible, 5_001),
];

/// The usual places but our own port: whoever listens there are we.
pub fn places_beside(own_port: u16) -> Vec<Place> {
    let places = USUAL_PLACES.into_iter();
    places.filter(|it| it.port != own_port).collect()
}

/// A server that was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub name: &'static str,
    pub kind: ProviderKind,
    pub base_url: String,
    pub models: Vec<String>,
}

impl Place {
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
pub async fn look(registry: &Registry, places: &[Place]) -> Vec<Found> {
    let all = join_all(places.iter().map(|it| ask(registry, it))).await;
    all.into_iter().flatten().collect()
}

async fn ask(registry: &Registry, place: &Place) -> Option<Found> {
    let base_url = place.base_url();
    let spec = ProviderSpec {
        kind: place.kind,
        base_url: Some(base_url.clone()),
        api_key: None,
        model: String::new(),
        tuning: Tuning::default(),
    };
    let endpoint = registry.endpoint(&spec).ok()?;
    let models = timeout(LIMIT, catalog::list_models(&endpoint)).await;
    Some(Found {
        name: place.name,
        kind: place.kind,
        base_url,
        models: models.ok()?.ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::places_beside;

    #[test]
    fn the_usual_places_are_looked_at_and_our_own_is_not() {
        let ports = |own| -> Vec<u16> { places_beside(own).iter().map(|it| it.port).collect() };

        assert_eq!(ports(3_000), [11_434, 1_234, 8_080, 5_001]);
        assert_eq!(ports(8_080), [11_434, 1_234, 5_001]);
    }
}
