//! Periodic work: re-checks the access of sockets, and deletes unused guests, characters and
//! assets.

pub mod access_review;
pub mod garbage_collection;
pub mod guest_cleanup;
