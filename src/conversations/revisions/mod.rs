//! Keeps the texts that edits have replaced.

pub mod message_revision;
