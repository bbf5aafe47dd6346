//! The tool `troupe:memory`, with which a character searches and changes its memories: the
//! actions of a call, the tool, and the changes of a run, which are written with its reply.

pub mod allowed_tools;
pub mod memory_action;
pub mod memory_tool;
pub mod pending_changes;
