//! Modules of the engine of the Responses API under `/v1`, which creates, runs, stores and cancels
//! responses, with the same models as spaces.
//!
//! ```text
//!   create ─► queued ──claim──► in_progress ──finish──► completed, incomplete, failed, cancelled
//!                │  ◄──requeue──┘      ▲ │
//!                └─ cancelled, expired │ └─ recovered: instance_lost
//!   create (foreground) ───────────────┘
//! ```
//!
//! Start with `engine` and `retrieval` (the operations), `response_task` (runs one response),
//! `responses_api::fold` (turns events into the response and its stream), `recorder` (what is
//! stored, and when; a response that is not stored has none) and `queue` (the only statements that
//! change the state of a response). Characters and spaces are models, too: `model_names` (which
//! ones) and `speaker_queue` (who speaks, in order). `embeddings` is separate: it creates no response.

pub mod embeddings;
pub mod engine;
pub mod error;
pub mod execution;
pub mod foreground;
pub mod input;
pub mod model_list;
pub mod model_provider;
pub mod persona_models;
pub mod preparation;
pub mod provider_calls;
pub mod queued_jobs;
pub mod recovery;
pub mod request;
pub mod retrieval;
pub mod services;
pub mod store;
pub mod tasks;
pub mod telemetry;
pub mod thread_runs;
pub mod threads;
pub mod tool_declarations;
pub mod worker;
