//! Modules that parse the tools that a request declares, and `tool_choice`: which of them the model
//! may or must call.

pub mod mcp_server;
pub mod tool;
pub mod tool_choice;
pub mod tool_names;
pub mod web_search;
