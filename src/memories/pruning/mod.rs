//! Deletes the least valuable memories of a space: those that a person prunes, and those beyond the
//! maximum of the space.

pub mod maximum;
pub mod pruner;
