//! Several nodes of one house: PostgreSQL holds the truth, Redis carries the word of it.

pub mod crossing;
pub mod faults;
