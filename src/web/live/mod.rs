//! The WebSocket endpoint `/ws`: one socket subscribes to any number of conversations.
//!
//! A socket is one task on the web worker that accepted the connection ([`session`]). Its database
//! queries run on the main runtime ([`queries`]); its events come through its outbox; a pure filter
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
