//! The wire between the nodes of one house: what is said on one is heard on all, over Redis.
//!
//! Redis carries hints and deltas, never the only copy of anything. Whatever it loses, repeats or
//! delays is found by number: see [`peers`](crate::realtime::bus::peers) and the position check
//! of the engine room. Without it every node goes on, and hears of the others' deeds from the
//! database a little later.

pub mod handle;
pub mod link;
pub mod meter;
pub mod outgoing;
pub mod packet;
pub mod peers;
pub mod signal;
pub mod tally;
