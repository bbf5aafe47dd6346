//! Changes of messages that exist: their texts, visibility, marks and reactions.

pub mod attachments;
pub mod edits;
pub mod reactions;
