//! Expands the texts of cards, splits their example messages, and inserts blocks at depths of the history.

pub mod card_texts;
pub mod depth_insertion;
pub mod example_messages;
