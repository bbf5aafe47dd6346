//! Regex scripts in prompts: `prompt_scripts` chooses the scripts of the speaker, and `script_pass`
//! applies them to messages and lore.

pub mod prompt_scripts;
pub mod script_pass;
