//! Assistants and Threads: assistants, threads with their messages, and the runs that extend a
//! thread. A thread has at most one run that has not ended.
//!
//! Start with `thread_writer` (creates and changes threads and messages). Each table has a file.

pub mod assistant;
pub mod list_range;
pub mod thread;
pub mod thread_error;
pub mod thread_message;
pub mod thread_retention;
pub mod thread_run;
pub mod thread_run_step;
pub mod thread_writer;
