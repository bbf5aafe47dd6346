//! The engine room.

pub mod command;
pub mod control;
pub mod draft;
pub mod endings;
pub mod plan;
pub mod planner;
pub mod queue;
pub mod run;
pub mod situation;
