//! Tests of the admin API: what only admins can read and change.

pub mod admin_role;
pub mod runs;
pub mod stats;
pub mod users;
