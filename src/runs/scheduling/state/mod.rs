//! The state of a conversation that the planner decides on, its types and the queries that load it.

pub mod command_facts;
pub mod schedule_state;
pub mod state_loader;
