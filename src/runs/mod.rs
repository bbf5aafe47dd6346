//! The engine room.

pub mod command;
pub mod queue;
pub mod run;
