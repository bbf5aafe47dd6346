//! Modules that convert texts to vectors, with the model of a provider or with the local one.

pub mod breaker;
pub mod local;
