//! Builds the prompt for a model from cards, lore, notes, the preset and the history.
//!
//! `context` holds the inputs and `builder::build` creates the prompt: preset entries in order,
//! cards and lore inserted, macros expanded, and blocks that exceed the context window dropped and
//! reported. Everything except loading the context is pure.

pub mod author_note;
pub mod blocks;
pub mod budget;
pub mod builder;
pub mod card_texts;
pub mod context;
pub mod depth_insertion;
pub mod greeting;
pub mod history;
pub mod loading;
pub mod lore;
pub mod record;
pub mod sections;
