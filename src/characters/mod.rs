//! Characters: cards and their pictures.

pub mod archive;
pub mod asset;
pub mod attachment;
pub mod byaf;
pub mod card;
pub mod character;
pub mod export;
pub mod forms;
pub mod listed;
pub mod outgoing;
pub mod parcel;
pub mod picture;
pub mod png;
pub mod png_chunks;
pub mod public_card;
pub mod repair;
pub mod room;
pub mod shelf;
pub mod spool;
