//! Realtime delivery: passes opaque envelopes to the subscribers on this node and on other nodes.
//!
//! The database is authoritative: a client that missed an envelope can always load the state again.

pub mod channel;
pub mod cluster;
pub mod event;
pub mod hub;
pub mod metrics;
pub mod outbox;
pub mod presence;
pub mod remote_presence;
pub mod socket_timeouts;
pub mod topic;
pub mod typing;
