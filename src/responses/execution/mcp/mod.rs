//! MCP servers of a response: what it does with them, before the first model call and after.

pub mod approvals;
pub mod plan;
pub mod setup;
