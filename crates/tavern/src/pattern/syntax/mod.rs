//! Modules that parse a pattern to a syntax tree.

pub mod capture_groups;
pub mod char_class;
pub mod class_set;
pub mod escape;
pub mod flags;
pub mod group_names;
pub mod parser;
pub mod syntax_error;
pub mod tree;
