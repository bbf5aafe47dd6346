//! Modules that import character cards (V1 to V3) with their avatars and assets from JSON, PNG,
//! CharX and BYAF files, and export them as JSON, PNG and CharX.

pub mod avatar_image;
pub mod byaf;
pub mod card;
pub mod card_assets;
pub mod card_error;
pub mod card_file;
pub mod card_versions;
pub mod export_document;
pub mod export_file;
pub mod importers;
pub mod png;
pub mod png_chunks;
pub mod repair;
pub mod temp_assets;
pub mod zip_archive;
