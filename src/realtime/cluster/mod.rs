//! The wire between the nodes of one house: what is said on one is heard on all, over Redis.
//!
//! Redis carries hints and deltas, never the only copy of anything. Whatever it loses, repeats or
//! delays is found by number: see [`peers`](crate::realtime::bus::peers) and the position check
//! of the engine room. Without it every node goes on, and hears of the others' deeds from the
//! database a little later.

pub mod bus;
pub mod message;
pub mod metrics;
pub mod redis_link;
pub mod send_queue;
pub mod sequence;
pub mod shared_counter;
pub mod signal;
