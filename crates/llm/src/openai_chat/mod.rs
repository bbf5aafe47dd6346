//! The dialect of the Chat Completions API, which OpenAI and compatible servers have.

pub mod chunk;
pub mod dialect;
pub mod error;
pub mod logprobs;
pub mod request;
pub mod samplers;
pub mod tools;
pub mod variant;
