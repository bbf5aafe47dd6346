//! The map of the house.
pub mod generation;
pub mod llm;
