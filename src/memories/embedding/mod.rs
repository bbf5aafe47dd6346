//! Embeds memories and queries by a model of a provider, in addition to the local model.
//!
//! A space uses the model of its settings or of the default provider ([`model_choice`]). A memory is
//! stored with its local vector; its vector of the provider's model is made later by a task
//! ([`embedding_task`], [`embedding_job`]), and until then it is found by its words and its local
//! vector. [`query_embedding`] embeds what a prompt searches for.
//!
//! **Invariant:** vectors of different models are never compared. The row of a space has the model of
//! its vectors, and a query is embedded by the provider only if its present model is the same.
//!
//! **Invariant:** a provider is never called within a transaction or while a lock is held.

pub mod embedding_job;
pub mod embedding_state;
pub mod embedding_task;
pub mod memory_embedding;
pub mod model_choice;
pub mod query_embedding;
pub mod vector_store;
