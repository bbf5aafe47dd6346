//! Modules of the built-in demo model, which needs neither a key nor a network.

pub mod keywords;
pub mod model;
pub mod personas;
pub mod sample_json;
pub mod speaker_choice;
pub mod tools;
