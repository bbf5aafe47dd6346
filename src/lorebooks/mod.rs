//! Lorebooks (World Info): their tables, which of them a prompt uses, and those of imported and
//! exported chats.

pub mod active_lorebooks;
pub mod exported_lore;
pub mod imported_lore;
pub mod lorebook;
pub mod lorebook_entry;
pub mod lorebook_link;
