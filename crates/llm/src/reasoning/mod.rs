//! Modules for the reasoning of models: how much a model should reason, and what of it goes back to
//! the model.

pub mod effort;
pub mod thinking_models;
pub mod thought;
