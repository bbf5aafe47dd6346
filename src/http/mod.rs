//! Shared by all endpoints: authentication, host and origin checks, request bodies, error
//! responses, pagination and socket connections.

pub mod allowed_hosts;
pub mod authentication;
pub mod client_ip;
pub mod common_responses;
pub mod connection;
pub mod csrf;
pub mod deserialize;
pub mod document;
pub mod encoded;
pub mod endpoint;
pub mod error;
pub mod frame_limit;
pub mod if_match;
pub mod json_body;
pub mod keepalive;
pub mod pagination;
pub mod request_body;
pub mod request_metrics;
pub mod response_headers;
pub mod run_to_completion;
pub mod schemas;
pub mod socket_caller;
pub mod socket_link;
pub mod socket_upgrade;
pub mod space_access;
pub mod upload;
