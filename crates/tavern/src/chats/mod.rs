//! Modules that read chat files (JSONL with one message on each line, in the variants of several
//! frontends, and documents of other programs), and convert exported chats to lines.

pub mod batches;
pub mod chat_file;
pub mod chat_variables;
pub mod dates;
pub mod export;
pub mod importers;
pub mod line;
pub mod line_reader;
pub mod line_report;
pub mod message;
pub mod metadata;
pub mod timed_world_info;
