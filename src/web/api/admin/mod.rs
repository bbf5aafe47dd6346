//! Endpoints for admins: user accounts, runs of all spaces, and statistics of the server.

pub mod runs;
pub mod stats;
pub mod users;
