//! Invite links, which several users can use, and invitations, which are for one user.

pub mod invite;
pub mod invite_acceptance;
pub mod space_invitation;
