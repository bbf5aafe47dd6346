//! Modules for the tables of stored responses and API conversations, the state transitions of
//! responses, and the deletion of old rows.

pub mod api_conversation;
pub mod api_conversation_item;
pub mod event;
pub mod idempotency_key;
pub mod item;
pub mod leased_table;
pub mod output_recorder;
pub mod queue;
pub mod response;
pub mod retention;
