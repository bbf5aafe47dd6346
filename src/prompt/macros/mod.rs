//! `{{char}}`, `{{user}}` and their like in cards, lore, personas and presets.
//!
//! `syntax` reads a text into pieces, `expansion` says what the pieces stand for: `meanings` are
//! whose card it is and who is there, `world` is what has been said and what is remembered.
//! Names are found whatever their case; what is not known stays as it is written.
//! **Invariant:** nothing here is ever applied to chat text; history goes out as it was written.

pub mod bindings;
pub mod date_time;
pub mod effect;
pub mod environment;
pub mod expansion;
pub mod random;
pub mod syntax;
pub mod variables;
