//! Spaces: who sits where, and by which rules they play.

pub mod card_rights;
pub mod events;
pub mod guests;
pub mod invite;
pub mod joining;
pub mod leftovers;
pub mod membership;
pub mod needs_step;
pub mod permissions;
pub mod preset_use;
pub mod roster;
pub mod roster_page;
pub mod seat_change;
pub mod shared_spaces;
pub mod space;
pub mod space_invitation;
pub mod tenancy;
pub mod watch;
