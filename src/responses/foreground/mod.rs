//! Modules that execute responses whose clients wait: start the task of a response or of a choice of a
//! chat completion, and return its result or the reader of its events.

pub mod chat_choices;
pub mod foreground_task;
