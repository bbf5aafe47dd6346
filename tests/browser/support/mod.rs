//! Test support shared with `tests/it`: the server as a process, HTTP clients, and a scripted
//! model.

#[path = "../../it/support/backends.rs"]
pub mod backends;
#[path = "../../it/support/database_facts.rs"]
pub mod database_facts;
#[path = "../../it/support/fake_provider/mod.rs"]
pub mod fake_provider;
#[path = "../../it/support/file_uploads.rs"]
pub mod file_uploads;
#[path = "../../it/support/http_client.rs"]
pub mod http_client;
#[path = "../../it/support/http_response.rs"]
pub mod http_response;
#[path = "../../it/support/multipart.rs"]
pub mod multipart;
#[path = "../../it/support/pictures.rs"]
pub mod pictures;
#[path = "../../it/support/poll.rs"]
pub mod poll;
#[path = "../../it/support/ports.rs"]
pub mod ports;
#[path = "../../it/support/process.rs"]
pub mod process;
#[path = "../../it/support/redis.rs"]
pub mod redis;
#[path = "../../it/support/trap_server.rs"]
pub mod trap_server;
#[path = "../../it/support/ws_client.rs"]
pub mod ws_client;
