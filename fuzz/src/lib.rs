//! What the targets hold the parsers to. Each function takes any bytes and panics where a rule is
//! broken; the targets themselves are one line each.

pub mod card;
pub mod charx;
pub mod chat;
pub mod lore;
pub mod macros;
pub mod markdown;
pub mod png;
pub mod world;
