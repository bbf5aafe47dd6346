//! The WebSocket door, `/ws`: one socket hears any number of conversations.
//!
//! A socket is one task on the web worker that took the connection ([`session`]). What it must ask
//! the database runs on the main runtime ([`errand`]); what it hears comes through its outbox; what
//! of a conversation passes on to the client is decided by a pure filter ([`subscription`]).

pub mod authorization;
pub mod command;
pub mod frame_schemas;
pub mod outgoing;
pub mod pending_subscription;
pub mod queries;
pub mod server_frames;
pub mod session;
pub mod subscription_filter;
pub mod subscriptions;
pub mod upgrade;
