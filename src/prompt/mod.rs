//! What a model is told before it speaks (PromptBuilder).
//!
//! `context` holds all that a prompt is made from, `builder::build` makes it: the entries of the
//! preset in their order, cards, lore and notes put in, history by line, macros expanded, and what
//! does not fit the window left out and named.
//! Everything but the loading of a context is pure.

pub mod blocks;
pub mod budget;
pub mod builder;
pub mod card_use;
pub mod cards;
pub mod chain;
pub mod context;
pub mod greeting;
pub mod history;
pub mod in_chat;
pub mod load;
pub mod lore;
pub mod macros;
pub mod note;
pub mod read;
pub mod record;
pub mod run_prompt;
pub mod sections;
pub mod sent;
pub mod shelf;
pub mod space_variable;
