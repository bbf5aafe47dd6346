//! Modules of the pattern engine: regular expressions with the syntax and the meaning of JavaScript
//! (ECMAScript 2025, with its Annex B), in a matcher whose work is counted.
//!
//! [`js_pattern::JsPattern`] is a compiled pattern, and [`matcher::Matcher`] searches for it in a
//! [`pattern_text::PatternText`]. Patterns are untrusted.

pub mod backtracking;
pub mod case_folding;
pub mod char_set;
pub mod compiler;
pub mod execution;
pub mod first_chars;
pub mod js_pattern;
pub mod matcher;
pub mod pattern_text;
pub mod program;
pub mod required_literals;
pub mod run_memo;
pub mod search;
pub mod syntax;
pub mod unicode_property;
