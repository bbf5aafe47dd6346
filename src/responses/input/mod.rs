//! Modules that load the history of a response, compact it on request, and convert items to the
//! prompt.

pub mod compaction;
pub mod continuation;
pub mod history;
pub mod part_content;
pub mod prior_items;
pub mod prompt;
pub mod prompt_assembler;
pub mod sealed_reasoning;
pub mod session_history;
pub mod summary_items;
