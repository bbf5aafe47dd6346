//! Reads chat files (JSONL with one message on each line, in the variants of several frontends),
//! and writes exported chats.

pub mod batches;
pub mod dates;
pub mod export;
pub mod line;
pub mod line_reader;
pub mod message;
pub mod metadata;
