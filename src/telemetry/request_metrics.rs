//! Metrics of HTTP requests: counts responses by endpoint, method and status class, and measures
//! the time until a response begins.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// In seconds. Most responses take a few milliseconds; one that tests a model may take a minute.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    /// The path pattern of the endpoint, never the requested path.
    route: String,
    method: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResponseLabels {
    route: String,
    method: &'static str,
    status: &'static str,
}

/// HTTP requests by endpoint. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct RequestMetrics {
    responses: Family<ResponseLabels, Counter>,
    durations: Family<RequestLabels, Histogram, fn() -> Histogram>,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            responses: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        }
    }
}

impl RequestMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "http_requests",
            "HTTP requests, by path pattern",
            self.responses.clone(),
        );
        registry.register(
            "http_request_duration_seconds",
            "Time until the response begins; a stream or a socket continues after it",
            self.durations.clone(),
        );
    }

    /// Records a response. `status` is its class, such as `2xx`.
    pub fn record(
        &self,
        route: String,
        method: &'static str,
        status: &'static str,
        duration: Duration,
    ) {
        let request_labels = RequestLabels {
            route: route.clone(),
            method,
        };
        let response_labels = ResponseLabels {
            route,
            method,
            status,
        };
        self.responses.get_or_create(&response_labels).inc();
        self.durations
            .get_or_create(&request_labels)
            .observe(duration.as_secs_f64());
    }
}
