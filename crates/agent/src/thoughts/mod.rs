//! Modules that collect the reasoning that goes back to a model.

pub mod thought_collector;
