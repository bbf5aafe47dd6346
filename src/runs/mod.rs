//! Scheduling and execution of runs: the scheduler applies a command to a conversation and decides
//! in the same transaction who speaks next; a worker claims the queued run and executes it; the end
//! of the run is the next command.
//!
//! ```text
//!                      enqueue                       finish
//!   command ─► step ─────────────► queued ─► running ───────► succeeded
//!                ▲                   │  ▲       │  ├─────────► failed
//!                │                   │  └───────┘  └─────────► canceled
//!                │                   │   release
//!                │                   └► canceled, skipped, failed (at the claim)
//!                └───────────────── RunEnded, LeaseExpired ◄── executor, reaper
//! ```
//!
//! The three parts by the names of the design:
//!
//! - `ConversationRun`, one attempt of one speaker to produce one text: a row of
//!   `conversation_runs` (`run`). Only `queue` changes its status.
//! - `RunPlanner`, which decides without I/O what a command changes: `planner`, with `completion`,
//!   `controls` and `regenerate`. Only `scheduler` calls it, in the transaction that writes
//!   the plan.
//! - `RunExecutor`, which builds the prompt, calls the model and commits the result through the
//!   scheduler: `executor`, started by `run_job`.
//!
//! Start with `command` (the inputs) and `engine` (the operations that handlers call).

pub mod active_jobs;
pub mod announcements;
pub mod background_jobs;
pub mod cluster_receiver;
pub mod conversation_start;
pub mod deletions;
pub mod engine;
pub mod error;
pub mod events;
pub mod execution;
pub mod followup;
pub mod job_batches;
pub mod message_changes;
pub mod reading;
pub mod regeneration;
pub mod scheduling;
pub mod services;
pub mod store;
pub mod tasks;
pub mod turn_deadlines;
