//! Prometheus metrics of the embedding clients of this node: requests, caches and circuit breakers, read at
//! each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use llm::embeddings::breaker::BreakerState;
use llm::embeddings::clients::EmbeddingClients;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The metrics of the clients.
#[derive(Debug)]
pub struct EmbeddingMetrics {
    pub clients: Arc<EmbeddingClients>,
}

impl EmbeddingMetrics {
    fn encode_requests(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let help = "Requests for embeddings; each attempt counts";
        let kind = MetricType::Counter;
        let mut family = encoder.encode_descriptor("embedding_requests", help, None, kind)?;
        for (path, result, n) in self.clients.counts().list_requests() {
            let labels = [("path", path), ("result", result)];
            ConstCounter::new(n).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_cache(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let help = "Texts whose embedding was in the cache, or was requested";
        let kind = MetricType::Counter;
        let mut family = encoder.encode_descriptor("embedding_cache", help, None, kind)?;
        let (hits, misses) = self.clients.counts().cached();
        for (result, n) in [("hit", hits), ("miss", misses)] {
            ConstCounter::new(n).encode(family.encode_family(&[("result", result)])?)?;
        }
        Ok(())
    }

    fn encode_breakers(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let mut n_open: BTreeMap<String, usize> = BTreeMap::new();
        for breaker in self.clients.list_breakers() {
            let n = n_open.entry(breaker.kind.to_string()).or_default();
            *n += usize::from(breaker.state != BreakerState::Closed);
        }
        let help = "Embedding models that are not called because of failures, by kind of provider";
        let kind = MetricType::Gauge;
        let mut family = encoder.encode_descriptor("memory_breaker_open", help, None, kind)?;
        for (provider, n) in n_open {
            let labels = [("provider", provider.as_str())];
            ConstGauge::new(n).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Collector for EmbeddingMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        self.encode_requests(&mut encoder)?;
        self.encode_cache(&mut encoder)?;
        self.encode_breakers(&mut encoder)
    }
}
