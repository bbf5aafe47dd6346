//! The syntax of macros: `parser` parses a text into the nodes of `tree`, and `blocks` joins
//! `{{name}}…{{/name}}`. `names` lists the macros, `short_form` parses `{{.name}}` and `{{$name}}`,
//! `unknown_macros` finds what a text contains besides, and `changing_macros` those whose values differ
//! from prompt to prompt.

pub mod blocks;
pub mod changing_macros;
pub mod names;
pub mod parser;
pub mod short_form;
pub mod tree;
pub mod unknown_macros;
