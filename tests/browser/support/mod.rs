//! The server as a process, people at its door, and a model that does what a test tells it.

#[path = "../../it/support/answer.rs"]
pub mod answer;
#[path = "../../it/support/backends.rs"]
pub mod backends;
#[path = "../../it/support/chat_files.rs"]
pub mod chat_files;
#[path = "../../it/support/decoy.rs"]
pub mod decoy;
#[path = "../../it/support/ear.rs"]
pub mod ear;
#[path = "../../it/support/facts.rs"]
pub mod facts;
#[path = "../../it/support/person.rs"]
pub mod person;
#[path = "../../it/support/ports.rs"]
pub mod ports;
#[path = "../../it/support/process.rs"]
pub mod process;
#[path = "../../it/support/redis.rs"]
pub mod redis;
#[path = "../../it/support/upstream/mod.rs"]
pub mod upstream;
#[path = "../../it/support/wait.rs"]
pub mod wait;
