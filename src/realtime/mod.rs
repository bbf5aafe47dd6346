//! The loudspeaker: carries envelopes that it cannot read to whoever listens on this node.
//!
//! The database is the truth; whoever missed an envelope can always ask again.

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
