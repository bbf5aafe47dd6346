//! Modules that parse the bodies of `POST /v1/chat/completions` into the types of a response.

pub mod chat_completion;
pub mod chat_messages;
pub mod chat_parts;
pub mod chat_tools;
