//! The protocol of the OpenAI-compatible Responses API (`/v1`) as types.

pub mod fold;
pub mod object_ids;
pub mod pending_tool_calls;
pub mod response;
pub mod status;
