//! The WebSocket endpoint `/ws`: over one socket a client subscribes to conversations and spaces
//! and receives their events.
//!
//! A socket is one task on the web worker that accepted the connection ([`session`]). Its database
//! queries run on the main runtime ([`queries`]); its events come through its outbox; a filter
//! ([`subscription_filter`]) decides which events of a conversation the client receives.

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
