//! Reads from the database: the pool of read connections, read-only transactions, pages of lists,
//! and large rows in slices.

pub mod page;
pub mod read_pool;
pub mod read_transaction;
pub mod row_slices;
