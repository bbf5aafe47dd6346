//! Conversations: timelines and the messages on them.

pub mod branching;
pub mod conversation;
pub mod markdown;
pub mod markdown_limits;
pub mod message;
pub mod message_text;
pub mod read_mark;
pub mod roots;
pub mod swipe;
pub mod timeline;
