//! The state of a conversation that the planner decides on: its types, the queries that load it,
//! and the cache of its parts.

pub mod claim_facts;
pub mod command_facts;
pub mod newest_seen;
pub mod post_persona;
pub mod regenerate_facts;
pub mod schedule_state;
pub mod state_cache;
pub mod state_loader;
