//! Lorebook files (World Info): reading, writing, and formats of other programs.

pub mod convert;
pub mod entry;
pub mod file;
pub mod importers;
pub mod lenient_json;
