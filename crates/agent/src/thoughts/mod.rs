//! Modules that collect the reasoning that is sent back to a model.

pub mod thought_collector;
