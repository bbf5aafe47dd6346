//! Modules that build the one text of a text completion from the blocks of a prompt: which templates
//! apply, how their macros are expanded, and where each block stands.

pub mod story_fields;
pub mod templates;
pub mod text_layout;
pub mod text_prompt;
