//! A model provider that does what a test tells it: a real HTTP server that speaks the streamed
//! Chat Completions API, faults included.
//!
//! ```text
//! let upstream = Upstream::start().await;
//! upstream.say("Hello.");                          // what every request is answered
//! upstream.next(Script::status(503));              // only the next one
//! let gate = upstream.gate();                      // from now on, text waits for gate.step()
//! upstream.requested(1).await;                     // facts can be waited for, with a deadline
//! ```
//!
//! Stands on its own: other test binaries may include the folder by its path, under an
//! `#[allow(dead_code)]`, as none of them uses all of it.

pub mod connection;
pub mod fault;
pub mod request_log;
pub mod script;
pub mod server;
