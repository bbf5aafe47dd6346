//! Writes the memories of a space as JSON Lines, and stores those of such a file. Members are named, so
//! that a file can be imported elsewhere.

pub mod import_report;
pub mod line_reader;
pub mod memory_export;
pub mod memory_import;
pub mod named_members;
