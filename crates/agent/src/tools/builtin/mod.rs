//! Tools that are part of the server: dice, the current time, the text of a web page, a search of the
//! web, and the declaration of the memory tool, which the application implements.

pub mod dice;
pub mod memory;
pub mod time;
pub mod web_fetch;
pub mod web_search;
