//! A scripted model provider: a real HTTP server with the streamed Chat Completions API, faults
//! included. It is self-contained, so other test binaries may include the folder by its path, under
//! `#[allow(dead_code)]`.

pub mod connection;
pub mod fault;
pub mod request_log;
pub mod script;
pub mod server;
