//! Lore: books of entries that enter a prompt when what is said, or what is known, asks for them.
//!
//! [`engine::run`] is a pure function from a [`scan::Scan`] to an [`outcome::Outcome`]: time is a
//! count of messages, chance a seed. What is said in a room is data here: it is searched, and
//! nothing in it is carried out.

pub mod activation;
pub mod active_lorebooks;
pub mod compiled_entry;
pub mod convert;
pub mod decorators;
pub mod engine;
pub mod engine_lorebook;
pub mod entry;
pub mod file;
pub mod importers;
pub mod inclusion_groups;
pub mod key_search;
pub mod lenient_json;
pub mod lorebook;
pub mod lorebook_entry;
pub mod lorebook_link;
pub mod pattern;
pub mod probability;
pub mod scan_budget;
pub mod scan_pass;
pub mod scan_request;
pub mod scan_result;
pub mod timed_effects;
