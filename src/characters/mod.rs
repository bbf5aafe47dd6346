//! Characters: their cards, avatars and assets, and the storage quota of their owners.

pub mod asset;
pub mod card_cache;
pub mod card_store;
pub mod character;
pub mod character_asset;
pub mod public_card;
pub mod quota;
