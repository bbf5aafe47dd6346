//! Modules that convert chats of other programs, each a JSON document, to messages: Agnai, KoboldAI,
//! text-generation-webui, Character.AI and Risu.

pub mod agnai_chat;
pub mod character_ai;
pub mod chat_builder;
pub mod chat_document;
pub mod kobold_save;
pub mod kobold_turns;
pub mod risu_chat;
pub mod webui_chat;
