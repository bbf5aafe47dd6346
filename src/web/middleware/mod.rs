//! What applies to all requests: headers, host and origin checks, deadlines, metrics.

pub mod allowed_hosts;
pub mod csrf;
pub mod encoded;
pub mod request_metrics;
pub mod response_headers;
pub mod run_to_completion;
