//! The pictures of messages in space files.

pub mod picture_transfer;
pub mod spooled_pictures;
