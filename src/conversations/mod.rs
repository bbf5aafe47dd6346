//! Conversations: timelines and their messages, branches, reactions, search, Markdown, background jobs,
//! import and export.

pub mod annotations;
pub mod audience;
pub mod branching;
pub mod chats;
pub mod conversation;
pub mod display;
pub mod jobs;
pub mod message;
pub mod newest_messages;
pub mod read_mark;
pub mod revisions;
pub mod root_conversation;
pub mod search;
pub mod snippet;
pub mod swipe;
pub mod text_quota;
pub mod timeline;
pub mod timeline_page;
pub mod token_usage;
pub mod translations;
