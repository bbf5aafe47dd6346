//! Table of rounds: which members speak in response to one trigger, and in which order.

pub mod round;
pub mod slot;
