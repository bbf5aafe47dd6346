//! Modules that convert characters of other programs (Agnai, text-generation-webui) to flat V1
//! fields, and keep the opaque files of Risu.

pub mod agnai_character;
pub mod attribute_notation;
pub mod character_document;
pub mod flat_fields;
pub mod risu_files;
pub mod webui_character;
