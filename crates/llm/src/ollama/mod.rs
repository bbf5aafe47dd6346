//! The dialect of Ollama's native API.

pub mod dialect;
pub mod messages;
pub mod stream;
