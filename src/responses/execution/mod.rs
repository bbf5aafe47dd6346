//! Modules that execute one response: model calls, tools, MCP servers, the event stream, and the
//! storage of its output.

pub mod agent_host;
pub mod end_log;
pub mod event_queue;
pub mod event_stream;
pub mod finalize;
pub mod mcp;
pub mod projection;
pub mod recorder;
pub mod response_sink;
pub mod response_task;
pub mod speaker_call;
pub mod speakers;
pub mod tool_config;
pub mod tool_dispatch;
pub mod usage;
