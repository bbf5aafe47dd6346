//! Character cards: versions 1 to 3, in JSON, PNG, CharX and BYAF files.

pub mod avatar_image;
pub mod byaf;
pub mod card;
pub mod card_assets;
pub mod card_error;
pub mod card_file;
pub mod card_versions;
pub mod export;
pub mod export_file;
pub mod png;
pub mod png_chunks;
pub mod repair;
pub mod temp_assets;
pub mod zip_archive;
