//! What each REST door promises: one file for each file of `src/api`, and what all have in common.

pub mod api_keys;
pub mod characters;
pub mod client_files;
pub mod conversations;
pub mod doors;
pub mod errors;
pub mod memberships;
pub mod messages;
pub mod openapi;
pub mod origins;
pub mod providers;
pub mod seat_changes;
pub mod session;
pub mod setup;
pub mod spaces;
pub mod users;
