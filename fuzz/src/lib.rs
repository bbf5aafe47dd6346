//! The rules that the fuzz targets check. Each `check` function takes any bytes and panics if a
//! rule is violated; the targets only call it.

pub mod card;
pub mod charx;
pub mod chat;
pub mod chat_document;
pub mod lore;
pub mod macros;
pub mod markdown;
pub mod memories;
pub mod personas;
pub mod png;
pub mod templates;
pub mod world;
pub mod yaml;
