//! Models that this server may ask, with their keys.

pub mod builtin_providers;
pub mod call_metrics;
pub mod encryption;
pub mod provider;
pub mod provider_factory;
