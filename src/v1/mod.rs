//! The Responses API under `/v1`: HTTP, SSE and WebSocket endpoints for programs.
//!
//! Read `request` and `items` (what a request may contain), `error` (how it is rejected),
//! `responses` and `conversations` (the handlers), `sse` (streaming), and `ws_session` (several
//! responses over one WebSocket). The module `responses/` implements the operations. The API is
//! documented by the Open Responses specification, not by our API document.

pub mod api_key_auth;
pub mod attachments;
pub mod body;
pub mod call_items;
pub mod compact;
pub mod conversations;
pub mod error;
pub mod fields;
pub mod format;
pub mod items;
pub mod mcp;
pub mod models;
pub mod pagination;
pub mod remote_files;
pub mod request;
pub mod responses;
pub mod routes;
pub mod sse;
pub mod tools;
pub mod ws_frames;
pub mod ws_response;
pub mod ws_session;
pub mod ws_upgrade;
