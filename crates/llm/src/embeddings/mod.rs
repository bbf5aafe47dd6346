//! Modules that convert texts to vectors with the model of a provider.

pub mod breaker;
pub mod call_counts;
pub mod client;
pub mod clients;
pub mod error;
pub mod options;
pub mod relay;
pub mod request;
pub mod vector_cache;
