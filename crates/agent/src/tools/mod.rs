//! Tools that this server executes itself, and the execution of a batch of calls.
//!
//! Read `tool` (the trait), `registry` (the available tools), `executor` (concurrent execution) and
//! `ordered_output` (orders the updates of concurrent calls). Callers decide which tools a
//! character may call.

pub mod builtin;
pub mod executor;
pub mod mcp;
pub mod ordered_output;
pub mod parse_arguments;
pub mod registry;
pub mod tool_settings;

pub mod fetch;
pub mod tool;
pub mod tool_messages;
pub mod tool_runtime;
