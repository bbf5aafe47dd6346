//! Calls models for the memory of a space: which model a space has chosen, a request that is answered
//! by a JSON object, and reading this object.

pub mod json_answer;
pub mod memory_models;
pub mod model_setting;
