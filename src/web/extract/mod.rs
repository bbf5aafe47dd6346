//! Extracts what handlers need from a request: the caller, their IP address and access to a space,
//! JSON bodies, uploads, page parameters and document versions.

pub mod authentication;
pub mod client_ip;
pub mod csrf;
pub mod deserialize;
pub mod if_match;
pub mod json_body;
pub mod pagination;
pub mod request_body;
pub mod space_access;
pub mod upload;
