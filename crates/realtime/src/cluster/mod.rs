//! The cluster: forwards events between the nodes of one installation, over Redis.
//!
//! Redis carries hints and deltas, never the only copy of anything. What it loses, repeats or
//! delays is detected by number: see [`sequence`] and the
//! position check in `missed_events` of the application. Without Redis every node
//! continues, and learns of the changes of the others from the database a little later.

pub mod bus;
pub mod message;
pub mod metrics;
pub mod redis_link;
pub mod send_queue;
pub mod sequence;
pub mod shared_counter;
pub mod signal;
