//! What a model is told before it speaks (PromptBuilder).
//!
//! `context` holds all that a prompt is made from, `builder::build` makes it: sections in order,
//! history by line, macros expanded, and what does not fit the window left out and named.
//! Everything but the loading of a context is pure.

pub mod budget;
pub mod builder;
pub mod context;
pub mod greeting;
pub mod history;
pub mod load;
pub mod macros;
pub mod sections;
