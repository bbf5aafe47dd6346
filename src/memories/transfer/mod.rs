//! Exports the memories of a space as JSON Lines, and imports such a file. Members are identified by
//! their names, so that a file can be imported into another space.

pub mod import_report;
pub mod line_reader;
pub mod memory_export;
pub mod memory_import;
pub mod named_members;
