//! Tests of `/v1`: the behavior of the Responses API, through the real endpoints.

pub mod background;
pub mod chains;
pub mod compact;
mod concurrency;
pub mod conversations;
mod end_of_response_logs;
pub mod failures;
pub mod fixture;
pub mod forms;
pub mod keys;
pub mod limits;
mod logprobs;
pub mod mcp;
pub mod memory;
pub mod persona_models;
pub mod process_kill;
pub mod requests;
pub mod simple_client;
pub mod sockets;
pub mod space_models;
pub mod stateless;
mod statements;
pub mod streams;
pub mod text;
pub mod tools;
pub mod tools_here;
pub mod tools_refused;
