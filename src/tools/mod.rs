//! Tools that run here: what they are, and how a batch of calls is run.
//!
//! Read `tool` (what a tool is), `registry` (which there are), `executor` (how calls of one round run
//! at once) and `gate` (how what they tell is put into the order of the calls). Who may call what is
//! decided above.

pub mod allowance;
pub mod arguments;
pub mod builtin;
pub mod executor;
pub mod gate;
pub mod mcp;
pub mod registry;

pub mod telling;
pub mod tool;
pub mod web;
pub mod workshop;
