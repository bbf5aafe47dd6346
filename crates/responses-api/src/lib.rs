//! The protocol of the OpenAI-compatible Responses API (`/v1`) as types.

pub mod object_ids;
