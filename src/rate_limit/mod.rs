//! Rate limits, limits of sockets and connections, and minimum speeds of request bodies.

pub mod body_timeouts;
pub mod client_network;
pub mod connections;
pub mod limit;
pub mod limits;
pub mod sliding_window;
pub mod socket_limit;
