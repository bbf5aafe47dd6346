//! Reads conversations and runs for clients: lists, message pages, snapshots and run history. Also
//! detects missed events.

pub mod conversation_list;
pub mod history;
pub mod message_pages;
pub mod missed_events;
pub mod snapshot;
pub mod views;
