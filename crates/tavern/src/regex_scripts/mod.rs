//! Regex scripts of cards and presets: they find and replace text with patterns that have the meaning
//! of JavaScript.
//!
//! [`script::RegexScript`] reads a script, and [`script_runner::ScriptRunner`] applies scripts to a text.
//! Scripts are untrusted.

pub mod find_regex;
pub mod pattern_cache;
pub mod replacement;
pub mod script;
pub mod script_error;
pub mod script_list;
pub mod script_names;
pub mod script_runner;
pub mod script_use;
pub mod script_view;
