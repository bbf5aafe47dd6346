//! Modules of `POST /v1/embeddings`.

pub mod creation;
pub mod relay_errors;
