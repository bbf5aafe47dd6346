//! The built-in demo model.

pub mod keywords;
pub mod model;
pub mod personas;
pub mod scripted_json;
pub mod tools;
