//! Modules that define and validate presets (prompt order, texts and samplers), and convert them
//! from and to files.

pub mod cache_layout;
pub mod complete_preset;
pub mod formats;
pub mod message_formats;
pub mod partial_preset;
pub mod preset_checks;
pub mod preset_file;
pub mod preset_file_kind;
pub mod preset_texts;
