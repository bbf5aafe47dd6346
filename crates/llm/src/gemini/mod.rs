//! The dialect of Google's Gemini API.

pub mod chunk;
pub mod dialect;
pub mod parts;
pub mod schema;
