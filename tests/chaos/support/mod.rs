//! What the chaos run shares with the other tests.

#[path = "../../it/support/backends.rs"]
pub mod backends;
#[path = "../../it/support/facts.rs"]
pub mod facts;
#[path = "../../it/support/invariants.rs"]
pub mod invariants;
#[path = "../../it/support/own_postgres.rs"]
pub mod own_postgres;
#[path = "../../it/support/person.rs"]
pub mod person;
#[path = "../../it/support/ports.rs"]
pub mod ports;
#[path = "../../it/support/redis.rs"]
pub mod redis;
#[path = "../../it/support/redis_line.rs"]
pub mod redis_line;
#[path = "../../it/support/small_disk.rs"]
pub mod small_disk;
#[path = "../../it/support/timeline.rs"]
pub mod timeline;
#[path = "../../it/support/transitions.rs"]
pub mod transitions;
#[path = "../../it/support/upstream/mod.rs"]
pub mod upstream;
#[path = "../../it/support/wait.rs"]
pub mod wait;
