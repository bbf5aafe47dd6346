//! Objects of Assistants and Threads.

pub mod assistant_object;
pub mod thread_content;
pub mod thread_message_object;
pub mod thread_object;
pub mod thread_status;
