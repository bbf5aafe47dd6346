//! What those who run the server look at, and what they put right.

pub mod runs;
pub mod stats;
pub mod users;
