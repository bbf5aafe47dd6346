//! The test support that the chaos run shares with the other tests.

#[path = "../../it/support/backends.rs"]
pub mod backends;
#[path = "../../it/support/database_facts.rs"]
pub mod database_facts;
#[path = "../../it/support/fake_provider/mod.rs"]
pub mod fake_provider;
#[path = "../../it/support/http_client.rs"]
pub mod http_client;
#[path = "../../it/support/invariants.rs"]
pub mod invariants;
#[path = "../../it/support/poll.rs"]
pub mod poll;
#[path = "../../it/support/ports.rs"]
pub mod ports;
#[path = "../../it/support/redis.rs"]
pub mod redis;
#[path = "../../it/support/redis_proxy.rs"]
pub mod redis_proxy;
#[path = "../../it/support/small_disk.rs"]
pub mod small_disk;
#[path = "../../it/support/test_postgres.rs"]
pub mod test_postgres;
#[path = "../../it/support/timeline_model.rs"]
pub mod timeline_model;
#[path = "../../it/support/transitions.rs"]
pub mod transitions;
