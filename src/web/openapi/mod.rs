//! Defines the type of an API endpoint, and builds the API document (OpenAPI) from all endpoints.

pub mod common_responses;
pub mod document;
pub mod endpoint;
pub mod schemas;
pub mod v1_errors;
