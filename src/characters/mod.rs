//! Characters: their cards, avatars and assets, with import and export.

pub mod asset;
pub mod avatar_image;
pub mod byaf;
pub mod card;
pub mod card_assets;
pub mod card_file;
pub mod card_store;
pub mod card_versions;
pub mod character;
pub mod character_asset;
pub mod export;
pub mod export_file;
pub mod png;
pub mod png_chunks;
pub mod public_card;
pub mod quota;
pub mod repair;
pub mod temp_assets;
pub mod zip_archive;
