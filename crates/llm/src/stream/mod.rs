//! Modules that decode the bytes of a model response to deltas, for every API.

pub mod decoder;
pub mod ndjson;
pub mod reasoning_tags;
pub mod sse;
pub mod untrusted_json;
