//! Modules for Google's Gemini API: they build its requests and convert its streamed chunks.

pub mod chunk;
pub mod dialect;
pub mod request_parts;
pub mod schema;
