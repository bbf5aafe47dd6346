//! Anthropic's Messages API.

pub mod blocks;
pub mod dialect;
pub mod events;
