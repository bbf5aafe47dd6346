//! Pictures from outside: decodes them within limits, and re-encodes those of messages.

pub mod decoder;
pub mod message_picture;
