//! The WebSocket door, `/ws`: one socket hears any number of conversations.

pub mod subscription;
