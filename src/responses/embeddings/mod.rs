//! Modules behind `POST /v1/embeddings`: vectors of the local embedding, and of the embedding models
//! of providers. Nothing is stored.

pub mod embedding_log;
pub mod embedding_relay;
pub mod relay_error;
pub mod relay_request;
pub mod text_tokens;
