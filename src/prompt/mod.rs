//! Builds the prompt for a model from cards, lorebooks, the author's note, the preset and the
//! messages.
//!
//! `context` holds the inputs and `builder::build` creates the prompt: preset entries in order,
//! cards and lore inserted, macros expanded, and blocks that exceed the context window dropped and
//! reported. Only `loading`, `record::run_prompt`, `record::sent_prompt_loader` and
//! `space_variable` do I/O.

pub mod author_note;
pub mod blocks;
pub mod budget;
pub mod builder;
pub mod cards;
pub mod chat_sections;
pub mod context;
pub mod greeting;
pub mod history;
pub mod loading;
pub mod lore;
pub mod lore_tester;
pub mod macro_values;
pub mod memory_block;
pub mod prefill;
pub mod prompt_error;
pub mod prompt_state;
pub mod record;
pub mod scripts;
pub mod sections;
pub mod space_variable;
pub mod text_completion;
