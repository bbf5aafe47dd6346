//! Writes a space into a file.

pub mod export_documents;
pub mod export_events;
pub mod export_messages;
pub mod export_run_history;
pub mod export_writer;
