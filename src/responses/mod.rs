//! Responses: what programs ask for under `/v1`, answered by the same models as rooms.
//!
//! ```text
//!   create ─► queued ──claim──► in_progress ──finish──► completed, incomplete, failed, cancelled
//!                │  ◄─hand_back──┘     ▲ │
//!                └─ cancelled, expired │ └─ swept: instance_lost
//!   create (foreground) ───────────────┘
//! ```
//!
//! Read `desk` and `shelf` (the verbs), `turn` (one turn, from the first event to the last), `fold`
//! (what happens becomes the response and its stream), `recorder` (what is written, and when; a
//! response that is not stored has none), `queue` (the only statements that move a response). Characters
//! and spaces answer as models, too: `voice` (which ones), `cast` (who speaks, one after the other).

pub mod active_tasks;
pub mod api_conversation;
pub mod api_conversation_item;
pub mod compaction;
pub mod concurrency_limit;
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
pub mod prompt;
pub mod prompt_assembler;
pub mod queue;
pub mod recall;
pub mod recorder;
pub mod recovery;
pub mod request;
pub mod response;
pub mod response_document;
pub mod response_sink;
pub mod response_task;
pub mod retention;
pub mod retrieval;
pub mod rounds;
pub mod services;
pub mod session_history;
pub mod sorting;
pub mod speaker_prompt;
pub mod speaker_queue;
pub mod speaker_selection;
pub mod speakers;
pub mod step;
pub mod tool_config;
pub mod usage;
pub mod worker;
