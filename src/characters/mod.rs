//! Characters: cards and their pictures.

pub mod asset;
pub mod character;
