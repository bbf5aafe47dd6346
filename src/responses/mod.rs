//! The Responses API: what clients request under `/v1`, with the same models as spaces.
//!
//! ```text
//!   create ─► queued ──claim──► in_progress ──finish──► completed, incomplete, failed, cancelled
//!                │  ◄──requeue──┘      ▲ │
//!                └─ cancelled, expired │ └─ recovered: instance_lost
//!   create (foreground) ───────────────┘
//! ```
//!
//! Start with `engine` and `retrieval` (the operations), `response_task` (runs one response),
//! `fold` (turns events into the response and its stream), `recorder` (what is stored, and when; a
//! response that is not stored has none) and `queue` (the only statements that change the state of
//! a response). Characters and spaces are models, too: `model_names` (which ones) and
//! `speaker_queue` (who speaks, in order).

pub mod agent_host;
pub mod api_conversation;
pub mod api_conversation_item;
pub mod compaction;
pub mod end_log;
pub mod engine;
pub mod engine_event;
pub mod error;
pub mod event;
pub mod event_queue;
pub mod event_stream;
pub mod finalize;
pub mod fold;
pub mod fold_calls;
pub mod fold_speaker;
pub mod fold_text;
pub mod history;
pub mod item;
pub mod mcp;
pub mod mcp_approvals;
pub mod mcp_setup;
pub mod model_list;
pub mod model_names;
pub mod object_ids;
pub mod pending_tool_calls;
pub mod preparation;
pub mod prior_items;
pub mod prompt;
pub mod prompt_assembler;
pub mod queue;
pub mod recorder;
pub mod recovery;
pub mod request;
pub mod response;
pub mod response_document;
pub mod response_sink;
pub mod response_task;
pub mod retention;
pub mod retrieval;
pub mod services;
pub mod session_history;
pub mod speaker_prompt;
pub mod speaker_queue;
pub mod speaker_selection;
pub mod speakers;
pub mod tool_config;
pub mod tool_dispatch;
pub mod usage;
pub mod worker;
