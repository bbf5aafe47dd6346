//! Renders the Markdown of messages as HTML that is safe to show.

pub mod markdown;
pub mod markdown_limits;
