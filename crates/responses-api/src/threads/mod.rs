//! Objects of Assistants and Threads.

pub mod assistant_object;
pub mod item_parts;
pub mod run_builder;
pub mod run_deltas;
pub mod run_fold;
pub mod run_message;
pub mod run_objects;
pub mod run_state;
pub mod run_values;
pub mod thread_content;
pub mod thread_message_object;
pub mod thread_object;
pub mod thread_status;
