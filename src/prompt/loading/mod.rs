//! Loads the inputs of a prompt from the database.

pub mod external_history;
pub mod history_cache;
pub mod history_filter;
pub mod history_lines;
pub mod history_query;
pub mod loader;
pub mod lore;
pub mod memory_loader;
pub mod model_language;
pub mod persona_loader;
pub mod picture_loader;
pub mod quotes;
pub mod summary_loader;
pub mod translated_history;
