//! What people attach to messages: replies that quote another message, reactions and bookmarks.

pub mod bookmark;
pub mod emoji;
pub mod message_annotations;
pub mod quote;
pub mod quoted_message;
pub mod reaction;
