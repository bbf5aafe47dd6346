//! Tools that run here: what they are, and how a batch of calls is run.
//!
//! Read `tool` (what a tool is), `registry` (which there are), `executor` (how calls of one round run
//! at once) and `gate` (how what they tell is put into the order of the calls). Who may call what is
//! decided above.

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
