//! The Chat Completions API of OpenAI and compatible servers.

pub mod chunk;
pub mod dialect;
pub mod error;
pub mod logprobs;
pub mod request;
pub mod samplers;
pub mod tools;
