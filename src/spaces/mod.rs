//! Spaces: who sits where, and by which rules they play.

pub mod membership;
pub mod space;
