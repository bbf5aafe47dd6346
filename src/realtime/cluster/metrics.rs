//! What passes between the nodes, counted.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The figures of the wire between nodes.
#[derive(Default)]
pub struct ClusterMetrics {
    /// Parcels that Redis took.
    pub sent: Counter,
    /// Parcels that were not sent: too many waited, too long, or Redis did not take them.
    pub dropped: Counter,
    /// Packets of other nodes.
    pub received: Counter,
    /// Packets of other nodes that came again, or too late.
    pub repeated: Counter,
    /// How often a number was missing in what another node sent.
    pub gaps: Counter,
    /// Bytes on our channel that no node of this house sent.
    pub foreign: Counter,
    /// How often the connection was begun anew.
    pub connects: Counter,
    /// 1 while other nodes can be heard.
    pub connected: Gauge,
}

impl ClusterMetrics {
    /// Makes the figures known.
    pub fn register(&self, registry: &mut Registry) {
        let counters = [
            ("bus_sent", "Packets sent to other nodes", &self.sent),
            (
                "bus_dropped",
                "Packets that other nodes were not sent, as Redis was slow or away",
                &self.dropped,
            ),
            ("bus_heard", "Packets of other nodes", &self.received),
            (
                "bus_repeated",
                "Packets of other nodes that came again or too late",
                &self.repeated,
            ),
            (
                "bus_gaps",
                "How often packets of another node were missing",
                &self.gaps,
            ),
            (
                "bus_foreign",
                "Messages on our channel that no node of this house sent",
                &self.foreign,
            ),
            (
                "bus_connects",
                "How often the subscription at Redis was begun",
                &self.connects,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "bus_connected",
            "1 while other nodes can be heard",
            self.connected.clone(),
        );
    }
}
