//! Modules for Ollama's native API: they build its requests and convert its streamed lines.

pub mod dialect;
pub mod request_parts;
pub mod stream;
