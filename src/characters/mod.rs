//! Characters: cards and their pictures.

pub mod asset;
pub mod card;
pub mod character;
pub mod export;
pub mod forms;
pub mod repair;
