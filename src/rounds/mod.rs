//! Rounds: which characters reply to one trigger, and in which order.

pub mod active_round;
pub mod round;
pub mod slot;
