//! The presets in users' libraries (prompts and sampling settings), and the preset that results for
//! a prompt.
//!
//! `document` is the complete preset of a prompt, with a default for every key. Stored presets are
//! partial: they contain only the keys that were set, so that they can be layered.

pub mod preset;
pub mod preset_summary;
pub mod resolve;
