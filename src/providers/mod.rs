//! The model providers that this server may call: their settings, encrypted keys and call metrics.

pub mod builtin_providers;
pub mod call_metrics;
pub mod context_window;
pub mod detected;
pub mod encryption;
pub mod extra_headers;
pub mod json_requests;
pub mod preset_overrides;
pub mod provider;
pub mod provider_factory;
pub mod provider_views;
pub mod role_handling;
pub mod usable_providers;
pub mod vision;
