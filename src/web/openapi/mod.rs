//! Builds the API document (OpenAPI) from the endpoints.

pub mod common_responses;
pub mod document;
pub mod endpoint;
pub mod schemas;
