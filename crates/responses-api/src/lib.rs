//! The protocol of the OpenAI-compatible Responses API (`/v1`) as types.

pub mod event;
pub mod fold;
pub mod item;
pub mod object_ids;
pub mod pending_tool_calls;
pub mod response;
pub mod status;
