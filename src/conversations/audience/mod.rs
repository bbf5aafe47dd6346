//! Who sees a message: its audience, the viewer for whom messages are read, and queries by them.

pub mod message_audience;
pub mod scheduled_messages;
pub mod seen_messages;
pub mod shared_messages;
pub mod viewer;
