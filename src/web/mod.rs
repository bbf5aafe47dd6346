//! The HTTP and WebSocket layer: the endpoints of `/api`, `/ws` and `/v1`, and the errors,
//! extractors, middleware, list responses and sockets that they share.

pub mod api;
pub mod encoded_page;
pub mod error;
pub mod extract;
pub mod live;
pub mod middleware;
pub mod openapi;
pub mod v1;
pub mod ws;
