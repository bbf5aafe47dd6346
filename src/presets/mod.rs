//! Presets: the prompts that instruct a model, and its sampling settings.
//!
//! `document` is the complete preset of a prompt, with a default for every key. Stored presets are
//! partial: they contain only the keys that were set, so that they can be layered.

pub mod default_texts;
pub mod document;
pub mod formats;
pub mod import;
pub mod partial;
pub mod preset;
pub mod preset_summary;
pub mod resolve;
