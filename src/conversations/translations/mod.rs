//! Translations of messages: the language into which a message is translated, the stored texts, the calls
//! of the model that translates, and the tasks that make a translation once for everyone who waits for it.

pub mod message_translation;
pub mod text_parts;
pub mod translation_events;
pub mod translation_model;
pub mod translation_tasks;
