//! The engine room: something happens, the scheduler writes it down and decides in the same step
//! who speaks next; a worker claims that decision and lets one speaker take one turn; the end of
//! the turn is the next thing that happened.
//!
//! ```text
//!                      enqueue                       finish
//!   command ─► step ─────────────► queued ─► running ───────► succeeded
//!                ▲                   │  ▲       │  ├─────────► failed
//!                │                   │  └───────┘  └─────────► canceled
//!                │                   │  hand_back
//!                │                   └► canceled, skipped, failed (at the claim)
//!                └──────────────────────── Ended, Abandoned ◄── executor, reaper
//! ```
//!
//! Read `command` (what can happen), `planner` with `endings`, `control` and `regenerate` (what follows),
//! `queue` (the only statements that move a run), `scheduler` (the gate), `engine` (the verbs).

pub mod announce;
pub mod auto_mode;
pub mod beginnings;
pub mod bell;
pub mod candidates;
pub mod choosing;
pub mod command;
pub mod consent;
pub mod context;
pub mod control;
pub mod copilot;
pub mod deletions;
pub mod draft;
pub mod due;
pub mod endings;
pub mod engine;
pub mod error;
pub mod events;
pub mod executor;
pub mod failed_run;
pub mod fairness;
pub mod followup;
pub mod job_batches;
pub mod jobs;
pub mod lease;
pub mod ledger;
pub mod live;
pub mod marked;
pub mod message_pages;
pub mod meter;
pub mod new_run;
pub mod offers;
pub mod permits;
pub mod plan;
pub mod planner;
pub mod positions;
pub mod preparation;
pub mod queue;
pub mod queue_edit;
pub mod reaper;
pub mod regenerate;
pub mod regenerate_turn;
pub mod relay;
pub mod run;
pub mod scheduler;
pub mod sink;
pub mod situation;
pub mod snapshot;
pub mod step_locks;
pub mod tool_approval;
pub mod tool_turn;
pub mod versions;
pub mod views;
pub mod worker;
pub mod writer;
pub mod writer_memory;
pub mod writer_rounds;
pub mod writer_versions;
