//! Presets (prompt texts and sampling settings): the tables of users' libraries, and the preset
//! that applies to a prompt.
//!
//! The preset of a prompt (`tavern::presets::complete_preset::Preset`) is complete, with a default
//! for every key. Stored presets are partial: they contain only the keys that were set, so that they
//! can be layered.

pub mod preset;
pub mod preset_summary;
pub mod resolve;
