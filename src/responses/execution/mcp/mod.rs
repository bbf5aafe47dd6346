//! Modules for the MCP servers of a response: approvals, encrypted credentials, and the work before
//! the first model call.

pub mod approvals;
pub mod plan;
pub mod setup;
