//! Several nodes of one house: PostgreSQL holds the truth, Redis carries the word of it.

pub mod cross_node_stream;
pub mod faults;
pub mod limits;
pub mod presence;
pub mod proxy;
pub mod redis_down;
pub mod several_installations;
