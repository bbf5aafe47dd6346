//! Middleware of HTTP requests (host check, response headers, metrics, completion of changes), and
//! the origin check.

pub mod allowed_hosts;
pub mod csrf;
pub mod request_metrics;
pub mod response_headers;
pub mod run_to_completion;
