//! Tests of several nodes of one installation: PostgreSQL stores the state, Redis carries the
//! notifications.

pub mod cross_node_stream;
pub mod faults;
pub mod limits;
pub mod memory_events;
pub mod presence;
pub mod proxy;
pub mod redis_down;
pub mod several_installations;
