//! Modules of the API under `/v1` for programs (responses, chat completions, embeddings, assistants): endpoints over
//! HTTP, server-sent events (SSE) and WebSocket.
//!
//! Read `request` in the crate `responses_api` (what a request may contain), then here `error` (how
//! it is rejected), `responses`, `conversations`, `chat` and `embeddings` (the handlers), `sse` (streaming),
//! and `ws_session` (several responses over one WebSocket). `src/responses/` implements the operations.
//! `routes` lists the handlers, each with its description for the API document, and `http/mounting` mounts them.

pub mod api_key_auth;
pub mod assistants;
pub mod chat;
pub mod compact;
pub mod conversations;
pub mod embeddings;
pub mod error;
pub mod headers;
pub mod http;
pub mod memory_query;
pub mod models;
pub mod pagination;
pub mod parsing;
pub mod responses;
pub mod routes;
pub mod sse;
pub mod ws_frames;
pub mod ws_response;
pub mod ws_session;
pub mod ws_upgrade;
