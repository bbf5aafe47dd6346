//! What is remembered about a space: memories that are made from messages or written by people, and
//! found again by their words and vectors.
//!
//! A step that appends messages requests to learn from them ([`tasks`]); [`learning`] makes memories from
//! them later, outside of any reply, with the model of the space ([`models`]) if it has one.
//! [`prompt_search`] finds the memories of a prompt in the index that a node keeps for each space
//! ([`index_cache`]). Characters search and change them by the tool in [`tool`]. A provider's model may embed
//! the memories in addition to the local one ([`embedding`]). [`summaries`] replace the older messages of
//! long conversations in prompts. Open pages are notified of changes ([`events`]).
//!
//! **Invariant:** every query names a space, and no result is of another one.

pub mod embedding;
pub mod embedding_model;
pub mod error;
pub mod events;
pub mod index_cache;
pub mod index_loader;
pub mod learning;
pub mod memory;
pub mod memory_audience;
pub mod memory_deletion;
pub mod memory_settings;
pub mod memory_source;
pub mod memory_store;
pub mod memory_vector;
pub mod message_changes;
pub mod metrics;
pub mod models;
pub mod other_sources;
pub mod prompt_search;
pub mod pruning;
pub mod summaries;
pub mod tasks;
pub mod tool;
pub mod transfer;
