//! What is told about the server to those who run it: lines for its log, figures for its watchers.
//!
//! Each room counts what happens in it, in a meter of its own; `metrics` gathers them.

pub mod logging;
pub mod metrics;
pub mod process_metrics;
pub mod request_metrics;
