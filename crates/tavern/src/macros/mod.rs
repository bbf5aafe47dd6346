//! Modules that parse and expand macros such as `{{char}}` and `{{user}}` in cards, lore, personas
//! and presets.
//!
//! `syntax` parses a text, `expansion` evaluates it with the names and cards from `bindings` and
//! the state from `environment`; `evaluation` returns the value of one macro. Names are
//! case-insensitive; unknown macros are left as they are.
//!
//! **Invariant:** macros in chat messages are never expanded; history is sent unchanged.

pub mod bindings;
pub mod card_use;
pub mod date_time;
pub mod environment;
pub mod evaluation;
pub mod expansion;
pub mod limits;
pub mod output;
pub mod position;
pub mod random;
pub mod short_form_value;
pub mod syntax;
pub mod values;
pub mod variables;
