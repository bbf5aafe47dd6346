//! What tests are made of: databases, the server as a process, a person, an ear, and the rules.

pub mod answer;
pub mod app;
pub mod backends;
pub mod blueprint;
pub mod cast;
pub mod ear;
pub mod eavesdropper;
pub mod engine_room;
pub mod facts;
pub mod fold;
pub mod furniture;
pub mod hearing;
pub mod house_rules;
pub mod invariants;
pub mod model_call;
pub mod person;
pub mod process;
pub mod queue_bench;
pub mod room;
pub mod rust_source;
pub mod statements;
pub mod timeline;
pub mod transitions;
pub mod upstream;
pub mod wait;
pub mod wire;
