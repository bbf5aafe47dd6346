//! The socket through its real door: what one hears, and who may.

pub mod fixture;
pub mod frames;
pub mod presence;
pub mod re_authorization;
pub mod rights;
pub mod slow;
pub mod stream;
pub mod subscriptions;
pub mod upgrade;
