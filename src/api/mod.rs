//! The REST door: `/api`. One file for each group of rows in the table of calls.

pub mod admin;
pub mod api_keys;
pub mod buttons;
pub mod card_bodies;
pub mod characters;
pub mod conversations;
pub mod engine_error;
pub mod health;
pub mod invites;
pub mod join;
pub mod memberships;
pub mod messages;
pub mod metrics;
pub mod new_seat;
pub mod provider_bodies;
pub mod providers;
pub mod routes;
pub mod runs;
pub mod sample;
pub mod seat_changes;
pub mod session;
pub mod settings;
pub mod setup;
pub mod space_rules;
pub mod spaces;
pub mod users;
