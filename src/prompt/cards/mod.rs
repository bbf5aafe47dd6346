//! Inserts the texts of cards into a prompt.

pub mod card_texts;
pub mod depth_insertion;
pub mod example_messages;
