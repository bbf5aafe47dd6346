//! Modules that parse the bodies of requests to the Responses API into types, and check all rules
//! that need no database.
//!
//! Items are the exception: clients may add fields to them and get them back unchanged, so they are
//! kept as JSON documents in the form in which they are stored and returned. `items/item_view`
//! reads them.

pub mod chat;
pub mod conversation_bodies;
pub mod create_embeddings;
pub mod create_response;
pub mod error;
pub mod ignored_fields;
pub mod items;
pub mod memory_query;
pub mod object_reader;
pub mod parameters;
pub mod server_rules;
pub mod text_config;
pub mod threads;
pub mod tools;
