//! Modules that convert texts to vectors, with the model of a provider or with the local one.

pub mod breaker;
pub mod client;
pub mod clients;
pub mod error;
pub mod local;
pub mod options;
pub mod request;
pub mod vector_cache;
