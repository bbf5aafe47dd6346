//! Calls models for the memory of a space, and reads which model a space has chosen.

pub mod memory_models;
pub mod model_setting;
