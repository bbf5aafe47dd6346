//! The dialect of Google's Gemini API: builds its requests and parses its responses.

pub mod chunk;
pub mod dialect;
pub mod request_parts;
pub mod schema;
