//! The syntax of macros: `parser` parses a text into the nodes of `tree`, and `blocks` joins
//! `{{name}}…{{/name}}`. `names` lists the macros, `short_form` parses `{{.name}}` and `{{$name}}`,
//! `unknown_macros` finds the macros of a text that are not expanded, and `volatile_macros` those whose values
//! usually differ between two prompts.

pub mod blocks;
pub mod names;
pub mod parser;
pub mod short_form;
pub mod tree;
pub mod unknown_macros;
pub mod volatile_macros;
