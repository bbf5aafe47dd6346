//! What the doors are asked, and how long they take to answer.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

/// Seconds. Most answers take a few milliseconds; one that tries a model may take a minute.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Asked {
    /// The pattern of the door, never the address that was asked for.
    route: String,
    method: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    route: String,
    method: &'static str,
    status: &'static str,
}

/// Requests by door. Cloning gives another handle on the same figures.
#[derive(Clone)]
pub struct Requests {
    answered: Family<Answered, Counter>,
    took: Family<Asked, Histogram, fn() -> Histogram>,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            answered: Family::default(),
            took: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        }
    }
}

impl Requests {
    /// Makes the figures known.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "http_requests",
            "Requests, by the pattern of their address",
            self.answered.clone(),
        );
        registry.register(
            "http_request_duration_seconds",
            "Until the answer begins: a stream or a socket goes on after it",
            self.took.clone(),
        );
    }

    /// One was answered. `status` is its class, such as `2xx`.
    pub fn count(&self, route: String, method: &'static str, status: &'static str, took: Duration) {
        let asked = Asked {
            route: route.clone(),
            method,
        };
        let answered = Answered {
            route,
            method,
            status,
        };
        self.answered.get_or_create(&answered).inc();
        self.took.get_or_create(&asked).observe(took.as_secs_f64());
    }
}
