//! Rounds: which characters reply to one trigger, and in which order.

pub mod round;
pub mod slot;
