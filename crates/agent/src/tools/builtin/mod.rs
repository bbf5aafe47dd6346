//! The built-in tools.

pub mod dice;
pub mod time;
pub mod web_fetch;
