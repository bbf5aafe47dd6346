//! Prometheus metrics of the hub: published envelopes, lost events and resubscriptions. Counting an
//! envelope is one atomic addition, without a lock.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::envelope::Payload;

/// The metrics of a hub.
pub struct HubMetrics {
    by_kind: Family<PublishedCounts, Counter>,
    frames: Counter,
    streams: Counter,
    deltas: Counter,
    controls: Counter,
    /// Events lost by sockets that are read too slowly.
    pub dropped: Counter,
    /// How often a socket was asked to subscribe again.
    pub resyncs: Counter,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PublishedCounts {
    kind: &'static str,
}

impl Default for HubMetrics {
    fn default() -> Self {
        let by_kind = Family::<PublishedCounts, Counter>::default();
        let of = |kind| by_kind.get_or_create_owned(&PublishedCounts { kind });
        Self {
            frames: of("frame"),
            streams: of("stream"),
            deltas: of("delta"),
            controls: of("order"),
            dropped: Counter::default(),
            resyncs: Counter::default(),
            by_kind,
        }
    }
}

impl HubMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "events_published",
            "Events published, with or without subscribers",
            self.by_kind.clone(),
        );
        registry.register(
            "events_dropped",
            "Events lost by sockets that are read too slowly",
            self.dropped.clone(),
        );
        registry.register(
            "resyncs",
            "How often a socket was asked to subscribe again",
            self.resyncs.clone(),
        );
    }

    /// Counts a published envelope.
    pub fn count_published(&self, payload: &Payload) {
        let counter = match payload {
            Payload::Frame { .. } | Payload::ExceptUser { .. } => &self.frames,
            Payload::Stream(_) => &self.streams,
            Payload::Delta(_) => &self.deltas,
            Payload::Control(_) => &self.controls,
        };
        counter.inc();
    }
}
