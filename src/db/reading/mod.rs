//! Reading: the pool of readers, pages of lists, and large rows in slices.

pub mod page;
pub mod read_pool;
pub mod slices;
