//! Invite links, and invitations of one user.

pub mod invite;
pub mod invite_acceptance;
pub mod space_invitation;
