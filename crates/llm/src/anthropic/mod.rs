//! The dialect of Anthropic's Messages API: builds its requests and parses its responses.

pub mod dialect;
pub mod events;
pub mod request_parts;
