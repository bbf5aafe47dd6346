//! Modules that limit how many calls run at the same time.
//!
//! `fair_permits` shares the permits of one limit among the owners of the calls; `server_permits` has
//! such a limit for each tool server.

pub mod fair_permits;
pub mod server_permits;
