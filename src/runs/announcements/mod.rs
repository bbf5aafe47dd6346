//! Publishes what a committed step changed, to those who may see it.

pub mod announce;
pub mod receivers;
pub mod shown_messages;
