//! Reads from the database: a pool of read connections, pages of lists, and large rows in slices.

pub mod page;
pub mod read_pool;
pub mod read_transaction;
pub mod slices;
