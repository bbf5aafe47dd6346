//! Defines and validates presets (prompt order, texts and samplers), and converts them from and to
//! files.

pub mod complete_preset;
pub mod formats;
pub mod partial;
pub mod preset_file;
pub mod preset_texts;
