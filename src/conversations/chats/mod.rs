//! Imports and exports chats as files.

pub mod chat_authors;
pub mod chat_batches;
pub mod chat_dates;
pub mod chat_export;
pub mod chat_import;
pub mod chat_line;
pub mod chat_line_export;
pub mod chat_metadata;
pub mod chat_reader;
pub mod import_job;
pub mod import_writer;
