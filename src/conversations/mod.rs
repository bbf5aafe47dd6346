//! Conversations: timelines and the messages on them.

pub mod branching;
pub mod chat_authors;
pub mod chat_batches;
pub mod chat_dates;
pub mod chat_extra;
pub mod chat_line;
pub mod chat_reader;
pub mod conversation;
pub mod export;
pub mod import;
pub mod import_job;
pub mod import_rows;
pub mod markdown;
pub mod markdown_limits;
pub mod message;
pub mod message_text;
pub mod newest;
pub mod pages;
pub mod read_mark;
pub mod roots;
pub mod search;
pub mod snippet;
pub mod swipe;
pub mod timeline;
