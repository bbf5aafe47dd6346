//! Modules of `/v1/assistants` and `/v1/threads`: handlers, error translation, lists and streams.

pub mod message_files;
pub mod object_lists;
pub mod run_errors;
pub mod run_steps;
pub mod run_stream;
pub mod runs;
pub mod stored_assistants;
pub mod thread_errors;
pub mod thread_messages;
pub mod threads;
