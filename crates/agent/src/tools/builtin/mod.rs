//! Tools that are part of the server: dice, the current time, and the text of a web page.

pub mod dice;
pub mod time;
pub mod web_fetch;
