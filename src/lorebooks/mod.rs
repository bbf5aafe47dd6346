//! Lorebooks (World Info): their tables, and which of them a prompt uses.

pub mod active_lorebooks;
pub mod lorebook;
pub mod lorebook_entry;
pub mod lorebook_link;
