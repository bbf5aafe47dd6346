//! What each REST door promises: one file for each file of `src/api`, and what all have in common.

pub mod admin;
pub mod api_keys;
pub mod characters;
pub mod client_files;
pub mod conversations;
pub mod copilot_candidates;
pub mod doorkeeping;
pub mod doors;
pub mod errors;
pub mod guests;
pub mod invites;
pub mod join;
pub mod memberships;
pub mod messages;
pub mod metrics;
pub mod openapi;
pub mod origins;
pub mod providers;
pub mod queue;
pub mod seat_changes;
pub mod session;
pub mod setup;
pub mod spaces;
pub mod users;
