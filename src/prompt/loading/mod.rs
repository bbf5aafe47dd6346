//! Loads what a prompt is built from: all reads of this module.

pub mod external_history;
pub mod history_query;
pub mod loader;
pub mod lore_loader;
pub mod run_prompt;
pub mod space_variable;
