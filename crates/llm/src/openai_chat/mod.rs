//! Modules for the Chat Completions API of OpenAI and compatible servers: they build its requests
//! and convert its streamed chunks and its errors.

pub mod chunk;
pub mod dialect;
pub mod error;
pub mod logprobs;
pub mod request;
pub mod result_files;
pub mod role_order;
pub mod samplers;
pub mod thoughts;
pub mod tools;
pub mod variant;
