//! The pictures that people add to messages: uploaded first, then posted with a message.

pub mod attachment;
pub mod attachment_cleanup;
pub mod attachment_store;
pub mod picture_text;
