//! The WebSocket door, `/ws`: one socket hears any number of conversations.
//!
//! A socket is one task on the web worker that took the connection ([`session`]). What it must ask
//! the database runs on the main runtime ([`errand`]); what it hears comes through its outbox; what
//! of a conversation passes on to the client is decided by a pure filter ([`subscription`]).

pub mod command;
pub mod delivery;
pub mod document;
pub mod ears;
pub mod errand;
pub mod frames;
pub mod guard;
pub mod opening;
pub mod session;
pub mod subscription;
pub mod upgrade;
