//! Modules of the tools that this server runs when a model calls them (built-in tools and tools of
//! MCP servers), and of the concurrent execution of several calls.
//!
//! Read `tool` (the trait), `builtin` and `mcp` (the tools), `registry` (the available tools),
//! `tool_settings` (which tools characters may call), `dice_roll` (dice of the tool and of people), `executor` (concurrent execution) and
//! `ordered_output` (orders the updates of concurrent calls).

pub mod builtin;
pub mod dice_roll;
pub mod executor;
pub mod mcp;
pub mod ordered_output;
pub mod parse_arguments;
pub mod registry;
pub mod tool_settings;

pub mod tool;
pub mod tool_messages;
pub mod tool_runtime;
pub mod web_fetcher;
