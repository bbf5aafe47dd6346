//! Learns from messages in the background: what a task does, and the loop that claims the tasks.
//!
//! A task makes its memories with a model ([`extraction`]) or without one ([`snippets`]).

pub mod extraction;
pub mod extraction_answer;
pub mod extraction_request;
pub mod learned_memory;
pub mod learning_job;
pub mod member_names;
pub mod message_learning;
pub mod snippets;
