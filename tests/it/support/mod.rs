//! What tests are made of: databases, the server as a process, a person, an ear, and the rules.

pub mod house_rules;
pub mod rust_source;
