//! Lorebook files (World Info): reads and writes them, also in formats of other programs.

pub mod convert;
pub mod entry;
pub mod file;
pub mod importers;
pub mod lenient_json;
