//! What is told about the server to those who run it: lines for its log, figures for its watchers.
//!
//! Each room counts what happens in it, in a meter of its own; `metrics` gathers them.

pub mod log;
pub mod metrics;
pub mod process;
pub mod requests;
