//! The dialect of Anthropic's Messages API.

pub mod blocks;
pub mod dialect;
pub mod events;
