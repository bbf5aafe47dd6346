//! Modules of the lorebook engine, which decides which lorebook entries are inserted into a prompt,
//! and where.
//!
//! [`engine::activate`] converts a [`scan_request::ScanRequest`] to a [`scan_result::ScanResult`]
//! without I/O: time is a number of messages, randomness a seed. Messages are only searched; macros
//! in them are never expanded.

pub mod activation;
pub mod compiled_entry;
pub mod decorators;
pub mod engine;
pub mod engine_lorebook;
pub mod inclusion_groups;
pub mod key_search;
pub mod pattern_key;
pub mod scan_budget;
pub mod scan_pass;
pub mod scan_request;
pub mod scan_result;
pub mod seeded_hash;
pub mod timed_effects;
