//! The REST door: `/api`. One file for each group of rows in the table of calls.

pub mod api_keys;
pub mod health;
pub mod routes;
pub mod session;
pub mod setup;
pub mod users;
