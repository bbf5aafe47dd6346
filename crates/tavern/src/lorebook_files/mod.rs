//! Reads lorebook files (World Info) of several programs, parses stored entries for the engine, and
//! writes world info files.

pub mod entry;
pub mod file;
pub mod importers;
pub mod lenient_json;
pub mod world_info;
