//! The formats and engines of SillyTavern: cards, lorebooks, presets and macros.
//!
//! Every function is pure: no table, no network, no clock. Files are untrusted; all limits are counted
//! while reading.

pub mod cards;
pub mod import_warning;
pub mod lorebook;
pub mod lorebook_files;
pub mod macros;
pub mod presets;
pub mod seeded_random;
