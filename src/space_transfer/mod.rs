//! Exports a whole space into one file, and imports such a file on any installation.

pub mod asset_transfer;
pub mod document;
pub mod export;
pub mod import_data;
pub mod import_finalize;
pub mod import_lore_state;
pub mod import_reader;
pub mod import_rows;
pub mod import_run_history;
pub mod limits;
pub mod lorebook_transfer;
pub mod pictures;
pub mod space_import;
