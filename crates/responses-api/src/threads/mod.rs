//! Objects of Assistants and Threads.

pub mod thread_message_object;
pub mod thread_status;
