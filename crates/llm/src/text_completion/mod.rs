//! Modules for the text completion APIs of OpenAI-compatible servers, llama.cpp and KoboldCpp: the
//! model continues one text.

pub mod chunk;
pub mod completion_api;
pub mod detection;
pub mod dialect;
pub mod request;
pub mod token_count;
