//! What clients read of a conversation and its runs.

pub mod conversation_list;
pub mod history;
pub mod message_pages;
pub mod missed_events;
pub mod snapshot;
pub mod views;
