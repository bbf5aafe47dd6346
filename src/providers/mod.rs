//! Models that this server may ask, with their keys.

pub mod meter;
pub mod models;
pub mod provider;
pub mod seal;
pub mod stock;
