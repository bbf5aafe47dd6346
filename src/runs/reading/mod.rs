//! Reads conversations and runs for clients: lists, message pages, snapshots, run history and
//! runs with a stored prompt. Also detects missed events.

pub mod conversation_list;
pub mod history;
pub mod message_pages;
pub mod missed_events;
pub mod prompt_runs;
pub mod snapshot;
pub mod views;
