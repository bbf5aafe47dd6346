//! Endpoints for administrators: users, runs and statistics of the whole server.

pub mod runs;
pub mod stats;
pub mod users;
