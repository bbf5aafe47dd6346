//! Modules of `POST /v1/embeddings`.

pub mod create_embeddings;
pub mod relay_errors;
