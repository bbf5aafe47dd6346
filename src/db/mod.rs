//! The database: SQLite in a file, or PostgreSQL. The truth of the house.

pub mod connect;
pub mod dialect;
pub mod doubt;
pub mod identity;
pub mod lock;
pub mod meter;
pub mod migrate;
pub mod read;
pub mod slices;
pub mod words;
pub mod write;
