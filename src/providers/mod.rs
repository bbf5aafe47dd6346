//! Model providers that this server may call, with their encrypted keys.

pub mod builtin_providers;
pub mod call_metrics;
pub mod encryption;
pub mod provider;
pub mod provider_factory;
