//! The syntax of macros: `parser` parses a text into the nodes of `tree`, and `blocks` joins
//! `{{name}}…{{/name}}`. `names` lists the macros, `short_form` parses `{{.name}}` and `{{$name}}`,
//! and `unknown_macros` finds what a text contains besides.

pub mod blocks;
pub mod names;
pub mod parser;
pub mod short_form;
pub mod tree;
pub mod unknown_macros;
