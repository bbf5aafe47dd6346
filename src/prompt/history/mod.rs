//! The history of a prompt: the blocks of its messages, where it begins, and the summary that replaces
//! the messages before.

pub mod history_fit;
pub mod history_window;
pub mod message_blocks;
pub mod summary_block;
pub mod whisper_marker;
