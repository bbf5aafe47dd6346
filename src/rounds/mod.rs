//! Rounds: who speaks in answer to one trigger, in which order.

pub mod round;
pub mod slot;
