//! Exports the memories of a space as JSON Lines, and imports such a file. Members are identified by their
//! names, so that a file can be imported into another space. Exports and imports the summaries of its
//! conversations, too, as part of the export file of a space.

pub mod import_report;
pub mod line_reader;
pub mod memory_export;
pub mod memory_import;
pub mod named_members;
pub mod summary_export;
pub mod summary_import;
pub mod summary_line;
