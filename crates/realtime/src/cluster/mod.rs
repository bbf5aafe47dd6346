//! Modules that exchange events and signals between the nodes of one installation over Redis, and
//! enforce limits that all nodes share, with counters in Redis.
//!
//! Redis never holds the only copy of data. Lost, repeated and delayed messages are detected by
//! their numbers: see [`sequence`], and the position check in `missed_events` of the application.
//! Without Redis every node continues, and reads the changes of the others from the database later.

pub mod bus;
pub mod message;
pub mod metrics;
pub mod redis_link;
pub mod send_queue;
pub mod sequence;
pub mod shared_counter;
pub mod signal;
