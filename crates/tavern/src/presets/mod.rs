//! Presets: generation settings and prompt order, and the files of other programs.

pub mod default_texts;
pub mod document;
pub mod formats;
pub mod import;
pub mod partial;
