//! The decision who speaks next: the commands, the pure planner, and the transaction around it.

pub mod auto_mode;
pub mod command;
pub mod completion;
pub mod controls;
pub mod copilot;
pub mod plan;
pub mod plan_builder;
pub mod planner;
pub mod queue_edit;
pub mod regenerate;
pub mod regenerate_last_turn;
pub mod scheduler;
pub mod speaker_choice;
pub mod state;
