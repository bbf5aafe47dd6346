//! Prometheus metrics of the messages between nodes.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The metrics of the cluster bus.
#[derive(Default)]
pub struct ClusterMetrics {
    /// Messages that Redis accepted.
    pub sent: Counter,
    /// Messages that were not sent: the queue was full, they were too old, or Redis did not accept
    /// them.
    pub dropped: Counter,
    /// Messages of other nodes.
    pub received: Counter,
    /// Messages of other nodes that arrived again, or too late.
    pub repeated: Counter,
    /// How often a number was missing in the messages of another node.
    pub gaps: Counter,
    /// Messages on our channel that no node of this installation sent.
    pub foreign: Counter,
    /// How often the connection was opened.
    pub connects: Counter,
    /// 1 while connected.
    pub connected: Gauge,
}

impl ClusterMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let counters = [
            ("bus_sent", "Messages sent to other nodes", &self.sent),
            (
                "bus_dropped",
                "Messages not sent to other nodes because Redis was slow or unreachable",
                &self.dropped,
            ),
            ("bus_heard", "Messages of other nodes", &self.received),
            (
                "bus_repeated",
                "Messages of other nodes that arrived again or too late",
                &self.repeated,
            ),
            (
                "bus_gaps",
                "How often messages of another node were missing",
                &self.gaps,
            ),
            (
                "bus_foreign",
                "Messages on our channel that no node of this installation sent",
                &self.foreign,
            ),
            (
                "bus_connects",
                "How often the subscription at Redis was opened",
                &self.connects,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "bus_connected",
            "1 while events of other nodes can be received",
            self.connected.clone(),
        );
    }
}
