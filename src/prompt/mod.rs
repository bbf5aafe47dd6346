//! What a model is told before it speaks (PromptBuilder).
//!
//! `context` holds all that a prompt is made from, `builder::build` makes it: the entries of the
//! preset in their order, cards, lore and notes put in, history by line, macros expanded, and what
//! does not fit the window left out and named.
//! Everything but the loading of a context is pure.

pub mod author_note;
pub mod blocks;
pub mod budget;
pub mod builder;
pub mod card_texts;
pub mod card_use;
pub mod context;
pub mod depth_insertion;
pub mod external_history;
pub mod greeting;
pub mod history;
pub mod history_query;
pub mod loader;
pub mod lore;
pub mod lore_loader;
pub mod macros;
pub mod prompt_record;
pub mod run_prompt;
pub mod sections;
pub mod sent_prompt;
pub mod space_variable;
