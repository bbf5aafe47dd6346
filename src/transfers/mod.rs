//! Transfers: a whole space as one file, out of a house and into another.

pub mod arrival;
pub mod assets;
pub mod books;
pub mod document;
pub mod documents;
pub mod handover;
pub mod limits;
pub mod pack;
pub mod past;
pub mod past_rows;
pub mod rows;
pub mod timed;
pub mod unpack;
