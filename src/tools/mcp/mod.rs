//! Tools of servers elsewhere, over the Model Context Protocol (streamable HTTP).
//!
//! Read `server` (who is called, and what opens it), `session` (the protocol: one session, from its
//! handshake to its end), `sessions` (those of one turn), `message` (what an answer says), `listed` (a tool that a server has),
//! `policy` (which of them may be called, and which only after somebody agreed), `lists` (lists are
//! asked for once in a while) and `content` (what came of a call, as text).
//!
//! **Invariant:** every call goes through the guard of `llm/egress`, follows no redirect, and reads no
//! more than is agreed here. What opens a server is in no log, no error and no item.

pub mod content;
pub mod message;
pub mod policy;
pub mod server;
pub mod session;
pub mod sessions;
pub mod tool_cache;
pub mod tool_info;
pub mod tool_names;
