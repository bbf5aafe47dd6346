//! How messages are shown: their Markdown as safe HTML, after the scripts that change what is shown.

pub mod display_scripts;
pub mod markdown;
pub mod message_authors;
