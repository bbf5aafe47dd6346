//! The dialect of Ollama's native API: builds its requests and parses its responses.

pub mod dialect;
pub mod request_parts;
pub mod stream;
