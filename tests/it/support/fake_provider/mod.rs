//! A scripted model provider: a real HTTP server with the streamed Chat Completions API, faults
//! included.
//!
//! ```text
//! let upstream = FakeProvider::start().await;
//! upstream.reply_with("Hello.");                          // the response to every request
//! upstream.next(ResponseScript::status(503));      // only the next one
//! let gate = upstream.gate();                      // from now on, text waits for gate.step()
//! upstream.wait_for_requests(1).await;                     // waits with a deadline
//! ```
//!
//! Self-contained: other test binaries may include the folder by its path, under
//! `#[allow(dead_code)]`, because none of them uses all of it.

pub mod connection;
pub mod fault;
pub mod request_log;
pub mod script;
pub mod server;
