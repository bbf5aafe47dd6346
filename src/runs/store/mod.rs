//! The tables of runs and tool approvals, and the statements that write a plan.

pub mod due_runs;
pub mod failed_run;
pub mod new_run;
pub mod plan_writer;
pub mod queue;
pub mod run;
pub mod run_view;
pub mod step_locks;
pub mod tool_approval;
pub mod write_claims;
pub mod write_effects;
pub mod write_messages;
pub mod write_rounds;
