//! Modules that turn a prompt into the one text that a text completion API continues: templates in
//! SillyTavern's forms, the story string, the sequences around messages, and what ends a reply.

pub mod context_template;
pub mod control_sequences;
pub mod embedded;
pub mod instruct_template;
pub mod rendering;
pub mod stop_strings;
pub mod story_string;
pub mod template_choice;
pub mod template_files;
pub mod template_limits;
pub mod text_templates;
