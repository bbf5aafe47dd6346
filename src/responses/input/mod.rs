//! What a model receives for a response: prior items, open tool calls, the prompt.

pub mod compaction;
pub mod history;
pub mod prior_items;
pub mod prompt;
pub mod prompt_assembler;
pub mod session_history;
pub mod summary_items;
