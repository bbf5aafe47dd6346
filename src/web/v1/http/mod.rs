//! Modules that all endpoints under `/v1` share: how they are mounted (`mounting`), and the parameters of
//! lists for the API document (`list_parameters`). `response_compression` compresses answers,
//! `idempotency` finds the object that a repeated request created, and `call_origin` identifies a
//! request in the log.

pub mod call_origin;
pub mod idempotency;
pub mod list_parameters;
pub mod mounting;
pub mod response_compression;
