//! Decides who speaks next in a conversation: the commands, the planner, which does no I/O, and the
//! transaction that loads the state and writes the plan.

pub mod auto_mode;
pub mod command;
pub mod completion;
pub mod controls;
pub mod copilot;
pub mod director;
pub mod messages;
pub mod plan;
pub mod plan_builder;
pub mod planner;
pub mod queue_edit;
pub mod regenerate;
pub mod regenerate_last_turn;
pub mod scheduler;
pub mod space_changes;
pub mod speaker_choice;
pub mod state;
pub mod turns;
pub mod versions;
