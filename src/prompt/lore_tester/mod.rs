//! Tests which lorebook entries a text activates, and in which order their texts are in a prompt.

pub mod default_order;
pub mod lore_test;
