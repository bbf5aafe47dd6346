//! Programs at `/v1`: the behaviours of the Responses API, through the real door.

pub mod background;
pub mod chains;
pub mod compact;
pub mod conversations;
pub mod failures;
pub mod forms;
pub mod keys;
pub mod killed;
pub mod limits;
mod logprobs;
mod many;
pub mod mcp;
pub mod memory;
pub mod naive;
pub mod requests;
pub mod sockets;
pub mod stage;
pub mod stateless;
pub mod streams;
pub mod text;
pub mod tools;
pub mod tools_here;
pub mod tools_refused;
pub mod voices;
pub mod voices_in_spaces;
