//! The loudspeaker: carries envelopes that it cannot read to whoever listens on this node.
//!
//! The database is the truth; whoever missed an envelope can always ask again.

pub mod bus;
pub mod channel;
pub mod elsewhere;
pub mod event;
pub mod hub;
pub mod meter;
pub mod outbox;
pub mod pace;
pub mod presence;
pub mod topic;
pub mod typing;
