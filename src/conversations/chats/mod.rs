//! Imports and exports chats as files.

pub mod chat_authors;
pub mod chat_export;
pub mod chat_import;
pub mod chat_lore;
pub mod chat_preview;
pub mod import_finish;
pub mod import_job;
pub mod import_leases;
pub mod import_writer;
