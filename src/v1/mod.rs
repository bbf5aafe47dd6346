//! The door under `/v1`: for programs that speak the Responses API, in its words.
//!
//! Read `request` and `items` (what may be asked), `error` (how it is refused), `responses` and
//! `conversations` (the calls), `sse` (a stream on the wire),
//! `socket` (turn after turn on one connection). What is done is in the room
//! `responses/`; its document is the one of the Open Responses specification, not ours.

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
