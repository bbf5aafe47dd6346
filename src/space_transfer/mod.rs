//! Exports a whole space into one file, and imports it on any installation.

pub mod assets;
pub mod document;
pub mod export_documents;
pub mod export_run_history;
pub mod export_writer;
pub mod import_finalize;
pub mod import_lore_state;
pub mod import_reader;
pub mod import_run_history;
pub mod imported_space;
pub mod limits;
pub mod lorebooks;
pub mod space_import;
pub mod space_rows;
