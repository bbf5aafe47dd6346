//! Modules of `POST /v1/chat/completions`, a projection of an unstored response.

pub mod chat_completions;
pub mod chat_errors;
pub mod chat_stream;
