//! Spaces: settings, members, invitations and permissions.

pub mod access_review;
pub mod account_changes;
pub mod card_rights;
pub mod events;
pub mod garbage_collection;
pub mod guest_cleanup;
pub mod invite;
pub mod invite_acceptance;
pub mod lifecycle;
pub mod membership;
pub mod membership_changes;
pub mod membership_update;
pub mod needs_step;
pub mod permissions;
pub mod preset_visibility;
pub mod roster_page;
pub mod shared_spaces;
pub mod space;
pub mod space_invitation;
