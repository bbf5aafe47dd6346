//! Chat files: JSONL with one message on each line, in the dialects of several frontends.

pub mod batches;
pub mod dates;
pub mod export;
pub mod line;
pub mod message;
pub mod metadata;
pub mod reader;
