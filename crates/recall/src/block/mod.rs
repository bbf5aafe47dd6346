//! Modules of the blocks of an index. A block has its memories in arrays, which a search reads in order.

pub mod memory_block;
pub mod postings;
pub mod vector_rows;
