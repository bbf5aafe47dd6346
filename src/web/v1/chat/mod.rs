//! Modules of `POST /v1/chat/completions`, which executes a request as a response that is not stored.

pub mod chat_completions;
pub mod chat_errors;
pub mod chat_stream;
