//! Modules that parse and expand macros such as `{{char}}` and `{{user}}` in cards, lore, personas
//! and presets.
//!
//! `syntax` parses a text, `expansion` evaluates it with the names and cards from `bindings` and
//! the state from `environment`. Names are case-insensitive; unknown macros are left as they are.
//!
//! **Invariant:** macros in chat messages are never expanded; history is sent unchanged.

pub mod bindings;
pub mod card_use;
pub mod date_time;
pub mod effect;
pub mod environment;
pub mod expansion;
pub mod random;
pub mod syntax;
pub mod variables;
