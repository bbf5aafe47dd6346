//! What those who run the server may look at and put right, and that nobody else may.

pub mod admin_role;
pub mod runs;
pub mod stats;
pub mod users;
