//! Configures logging, and collects the Prometheus metrics of this process.
//!
//! Other modules define the metrics of what they do; `metrics` collects them in one registry.

pub mod logging;
pub mod metrics;
pub mod process_metrics;
pub mod request_metrics;
