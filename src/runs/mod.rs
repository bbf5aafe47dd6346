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
//! - `RunPlanner`, the pure decision what a command changes: `planner`, with `completion`,
//!   `controls` and `regenerate`. Only `scheduler` calls it, in the transaction that writes
//!   the plan.
//! - `RunExecutor`, which builds the prompt, calls the model and hands in the result: `executor`,
//!   started by `run_job`.
//!
//! Start with `command` (the inputs) and `engine` (the operations that handlers call).

pub mod agent_host;
pub mod announce;
pub mod approval_wait;
pub mod auto_mode;
pub mod candidates;
pub mod chunk_sink;
pub mod cluster_receiver;
pub mod command;
pub mod completion;
pub mod controls;
pub mod conversation_list;
pub mod conversation_start;
pub mod copilot;
pub mod deletions;
pub mod due_runs;
pub mod engine;
pub mod error;
pub mod events;
pub mod executor;
pub mod failed_run;
pub mod fairness;
pub mod followup;
pub mod history;
pub mod job_batches;
pub mod jobs;
pub mod lease;
pub mod live_streams;
pub mod message_pages;
pub mod message_versions;
pub mod metrics;
pub mod missed_events;
pub mod new_run;
pub mod permits;
pub mod plan;
pub mod plan_builder;
pub mod plan_writer;
pub mod planner;
pub mod preparation;
pub mod queue;
pub mod queue_edit;
pub mod recovery;
pub mod regenerate;
pub mod regenerate_last_turn;
pub mod run;
pub mod run_job;
pub mod scheduler;
pub mod services;
pub mod snapshot;
pub mod speaker_choice;
pub mod state;
pub mod step_locks;
pub mod step_marks;
pub mod tool_approval;
pub mod tool_offers;
pub mod views;
pub mod write_effects;
pub mod write_messages;
pub mod write_rounds;
