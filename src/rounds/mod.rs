//! Tables of rounds: which members speak in response to one trigger, and in which order.

pub mod active_round;
pub mod round;
pub mod slot;
