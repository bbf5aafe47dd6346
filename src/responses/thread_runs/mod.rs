//! Runs of threads: creates them, executes them like background responses, and streams, continues,
//! cancels and ends them.
//!
//! ```text
//!   create ─► queued ──claim──► in_progress ──► completed, incomplete, failed, expired
//!               ▲  ◄──requeue──┘      │  │ └─► cancelling ─► cancelled
//!               └─submit─ requires_action ◄─┘    (queued and requires_action: ─► cancelled, expired)
//! ```
//!
//! Start with `run_operations` (what clients can do), `run_worker` (claims a run and executes it),
//! `run_context` (the input of the model), `responses_api::threads::run_fold` (turns events into the
//! run, its steps and its messages), `run_recorder` (what is stored, and when) and `run_queue` (the
//! only statements that change the status of a run).

pub mod run_cancellation;
pub mod run_context;
pub mod run_error;
pub mod run_event;
pub mod run_events_reader;
pub mod run_finalize;
pub mod run_operations;
pub mod run_queue;
pub mod run_recorder;
pub mod run_recovery;
pub mod run_row_conversion;
pub mod run_spec;
pub mod run_worker;
