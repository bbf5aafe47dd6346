//! Modules for Anthropic's Messages API: they build its requests and convert its streamed events.

pub mod cache_marks;
pub mod dialect;
pub mod events;
pub mod request_parts;
pub mod thinking;
