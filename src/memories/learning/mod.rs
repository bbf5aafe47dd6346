//! Learns from messages in the background: the queue of tasks, what a task does, and the loop that
//! claims them.

pub mod learning_job;
pub mod memory_task;
pub mod message_learning;
