//! Modules that read lorebook files (World Info) of several programs, parse stored entries for the
//! engine, and convert lorebooks to world info files.

pub mod entry;
pub mod file;
pub mod importers;
pub mod lenient_json;
pub mod world_info;
