//! The built-in demo model, which needs neither a key nor a network.

pub mod keywords;
pub mod model;
pub mod personas;
pub mod scripted_json;
pub mod tools;
