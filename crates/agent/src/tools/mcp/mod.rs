//! Modules of a client for tools of remote servers, which it calls with the Model Context Protocol
//! (MCP) over streamable HTTP.
//!
//! Read `remote_server` (the address and its credentials), `session` (the protocol, from handshake
//! to end), `sessions` (the sessions of one response or run), `message` (JSON-RPC messages and
//! errors), `tool_info` (a tool of a server), `policy` (which tools may be called, and which need
//! approval), `tool_cache` (cached tool lists), `tool_names` (names of the tools for models) and
//! `result_text` (results as text).
//!
//! **Invariant:** every call uses the client of `outbound-http`, follows no redirect, and reads
//! only a limited number of bytes. Credentials appear in no log, error or item.

pub mod message;
pub mod policy;
pub mod remote_server;
pub mod result_text;
pub mod session;
pub mod sessions;
pub mod tool_cache;
pub mod tool_info;
pub mod tool_names;
