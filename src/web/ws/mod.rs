//! WebSocket connections of `/ws` and `/v1`: upgrade, transport, keep-alive, and the caller of a
//! socket.

pub mod connection;
pub mod frame_limit;
pub mod keepalive;
pub mod socket_caller;
pub mod socket_link;
pub mod socket_upgrade;
