//! The tools of the house.

pub mod dice;
pub mod time;
pub mod web_fetch;
