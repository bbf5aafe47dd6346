//! The dialect of the Chat Completions API, for OpenAI and compatible servers: builds its requests
//! and parses its responses.

pub mod chunk;
pub mod dialect;
pub mod error;
pub mod logprobs;
pub mod request;
pub mod samplers;
pub mod tools;
pub mod variant;
