//! Middleware of HTTP requests: host check, response headers, metrics, and completion of changes.

pub mod allowed_hosts;
pub mod request_metrics;
pub mod response_headers;
pub mod run_to_completion;
