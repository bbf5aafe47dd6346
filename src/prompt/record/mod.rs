//! The record of what was sent to the model, and what of it a user may read.

pub mod hidden_cards;
pub mod prompt_record;
pub mod sent_prompt;
