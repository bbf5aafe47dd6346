//! Records of sent prompts: their stored form and table, how they are loaded, and the removal of
//! texts that a user may not read.

pub mod hidden_cards;
pub mod prompt_effects;
pub mod prompt_prefix;
pub mod recorded_block;
pub mod recorded_piece;
pub mod run_prompt;
pub mod sent_prompt;
pub mod sent_prompt_loader;
pub mod stop_strings;
pub mod volatile_entries;
pub mod whispered_blocks;
