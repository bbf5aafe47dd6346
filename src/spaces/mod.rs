//! Spaces: their settings, members, invitations, permissions, events and maintenance.

pub mod account_changes;
pub mod card_rights;
pub mod copilot_steps;
pub mod events;
pub mod invites;
pub mod lifecycle;
pub mod maintenance;
pub mod membership;
pub mod membership_update;
pub mod needs_step;
pub mod permissions;
pub mod posts;
pub mod preset_visibility;
pub mod roster_changes;
pub mod roster_page;
pub mod shared_spaces;
pub mod space;
