//! Rate limits, limits of WebSockets and HTTP connections, and minimum speeds of request bodies.

pub mod body_timeouts;
pub mod client_network;
pub mod connections;
pub mod keyed_limit;
pub mod server_limits;
pub mod sliding_window;
pub mod socket_limit;
