//! The door under `/v1`: for programs that speak the Responses API, in its words.
//!
//! Read `request` and `items` (what may be asked), `error` (how it is refused), `responses` and
//! `conversations` (the calls), `sse` (a stream on the wire),
//! `socket` (turn after turn on one connection). What is done is in the room
//! `responses/`; its document is the one of the Open Responses specification, not ours.

pub mod attachments;
pub mod body;
pub mod call_items;
pub mod compact;
pub mod conversations;
pub mod error;
pub mod far_files;
pub mod fields;
pub mod format;
pub mod items;
pub mod key;
pub mod list;
pub mod mcp;
pub mod models;
pub mod request;
pub mod responses;
pub mod routes;
pub mod socket;
pub mod socket_frames;
pub mod socket_session;
pub mod socket_turn;
pub mod sse;
pub mod tools;
