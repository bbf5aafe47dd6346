//! The database: SQLite in a file, or PostgreSQL. The truth of the house.

pub mod checkpoint;
pub mod clock_offset;
pub mod connect;
pub mod damage;
pub mod dialect;
pub mod doubt;
pub mod health;
pub mod identity;
pub mod instance_lock;
pub mod lock;
pub mod maintenance;
pub mod meter;
pub mod migrate;
pub mod modes;
pub mod ownership;
pub mod probe;
pub mod read;
pub mod reuse;
pub mod segments;
pub mod slices;
pub mod words;
pub mod write;
