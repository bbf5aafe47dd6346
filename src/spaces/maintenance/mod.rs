//! Periodic work on spaces and accounts: re-checks of access, deletion of unused data.

pub mod access_review;
pub mod garbage_collection;
pub mod guest_cleanup;
