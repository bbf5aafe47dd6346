//! Regex scripts of the cards and presets that a space uses: which may run there, and what they make
//! of a text.

pub mod script_cache;
pub mod script_report;
pub mod space_scripts;
pub mod speaker_scripts;
pub mod writer_scripts;
