//! Assistants and Threads: assistants, threads with their messages, and the runs that extend a
//! thread. A thread has at most one run that has not ended.

pub mod assistant;
pub mod thread;
pub mod thread_message;
pub mod thread_run;
pub mod thread_run_step;
