//! Transfers: a whole space as one file, out of a house and into another.

pub mod arrival;
pub mod assets;
pub mod books;
pub mod document;
pub mod handover;
pub mod pack;
pub mod rows;
pub mod unpack;
