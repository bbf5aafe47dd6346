//! The pending background work of the memory, as rows of table `memory_tasks` ([`memory_task`]).
//!
//! A step that changes messages or memories requests a task in its own transaction: to learn from messages
//! ([`learning_task`], [`learning_request`]), to summarize a conversation ([`summarizing_task`]), or to make
//! vectors ([`embedding_task`]). The job of each queue claims, renews and ends them by the same functions
//! ([`task_queue`]). [`failed_tasks`] lists those that are not retried.

pub mod embedding_task;
pub mod failed_tasks;
pub mod learning_request;
pub mod learning_task;
pub mod memory_task;
pub mod summarizing_task;
pub mod task_deletion;
pub mod task_queue;
