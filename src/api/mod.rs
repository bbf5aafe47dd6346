//! The REST door: `/api`. One file for each group of rows in the table of calls.

pub mod api_keys;
pub mod conversations;
pub mod engine_error;
pub mod health;
pub mod messages;
pub mod routes;
pub mod runs;
pub mod session;
pub mod setup;
pub mod users;
