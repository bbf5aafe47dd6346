//! Embeds memories and queries by a model of a provider, in addition to the local model.
//!
//! A space uses the model of its settings or of the default provider ([`model_choice`]). A memory is stored
//! with its local vector; its vector of the provider's model is added later by a task ([`embedding_job`]),
//! and until then it is found by its words and its local vector. [`query_embedding`] embeds the queries of a
//! prompt.
//!
//! **Invariant:** vectors of different models are never compared. The row of a space names the model of
//! its vectors, and a query is embedded by the provider only if the space still uses this model.
//!
//! **Invariant:** a provider is never called within a transaction or while a lock is held.

pub mod embedded_batch;
pub mod embedding_job;
pub mod embedding_state;
pub mod memory_embedding;
pub mod model_choice;
pub mod query_embedding;
pub mod refused_texts;
pub mod task_error;
pub mod task_finish;
pub mod vector_store;
