//! The map of the house.
