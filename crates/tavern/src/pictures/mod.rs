//! Pictures from outside: decodes them within limits, and redraws those of messages.

pub mod decoder;
pub mod message_picture;
