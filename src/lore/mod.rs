//! Lore: books of entries that enter a prompt when what is said, or what is known, asks for them.
//!
//! [`engine::run`] is a pure function from a [`scan::Scan`] to an [`outcome::Outcome`]: time is a
//! count of messages, chance a seed. What is said in a room is data here: it is searched, and
//! nothing in it is carried out.

pub mod book;
pub mod convert;
pub mod decorators;
pub mod dice;
pub mod effort;
pub mod engine;
pub mod entry;
pub mod file;
pub mod foreign;
pub mod groups;
pub mod judge;
pub mod loose;
pub mod lorebook;
pub mod lorebook_entry;
pub mod lorebook_link;
pub mod outcome;
pub mod pattern;
pub mod prepared;
pub mod scan;
pub mod search;
pub mod sources;
pub mod timed;
