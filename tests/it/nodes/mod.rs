//! Several nodes of one house: PostgreSQL holds the truth, Redis carries the word of it.

pub mod crossing;
pub mod deaf;
pub mod faults;
pub mod houses;
pub mod limits;
pub mod people;
pub mod proxy;
