//! What tests lean on.

pub mod model;
pub mod upstream;
