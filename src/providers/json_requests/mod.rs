//! Requests that a model answers with one JSON object: the request in the strictest format that the
//! API supports, the data in it, and reading the object.

pub mod data_block;
pub mod json_answer;
pub mod json_request;
