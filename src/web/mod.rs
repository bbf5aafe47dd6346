//! HTTP and WebSocket: the endpoints of `/api`, `/ws` and `/v1`, and what they share.

pub mod api;
pub mod error;
pub mod extract;
pub mod live;
pub mod middleware;
pub mod openapi;
pub mod v1;
pub mod ws;
