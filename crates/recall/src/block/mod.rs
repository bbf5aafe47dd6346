//! The parts of an index, each with the memories that a search reads one after the other in arrays.

pub mod memory_block;
pub mod postings;
pub mod vector_rows;
