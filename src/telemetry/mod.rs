//! Logging and Prometheus metrics for operators.
//!
//! Each module has a metrics type for what it does; `metrics` collects them.

pub mod logging;
pub mod metrics;
pub mod process_metrics;
pub mod request_metrics;
