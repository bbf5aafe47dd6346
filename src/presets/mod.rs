//! Presets: how a model is told what to do, and how it is to choose its words.
//!
//! `document` is what a turn goes by, whole, with a default for everything. What people keep is
//! sparser: an object with only those keys that somebody decided, so that one can lie over another.

pub mod default_texts;
pub mod document;
pub mod formats;
pub mod import;
pub mod partial;
pub mod preset;
pub mod preset_summary;
pub mod resolve;
