//! Modules that read chat files (JSONL with one message on each line, in the variants of several
//! frontends), and convert exported chats to lines.

pub mod batches;
pub mod dates;
pub mod export;
pub mod line;
pub mod line_reader;
pub mod message;
pub mod metadata;
