//! Tests which lorebook entries a text activates, and where their texts stand in a prompt.

pub mod default_order;
pub mod lore_test;
