//! Reads conversations and runs for clients: lists, message pages, snapshots, run history,
//! previews of prompts, runs with a stored prompt, and who speaks next. Also detects missed events.

pub mod conversation_list;
pub mod history;
pub mod message_pages;
pub mod missed_events;
pub mod next_speaker;
pub mod prompt_preview;
pub mod prompt_runs;
pub mod snapshot;
pub mod views;
