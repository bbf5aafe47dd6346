//! Declares the modules of the application in groups, lowest layer first. A module may use modules
//! of the groups above its own and the crates in `crates/`, but no other module of its own group.
//!
//! `tests/it/architecture.rs` reads this list and checks every import.

// Settings that list hosts, networks, origins and limits; caches with a limit in bytes; secret settings.
pub mod cors_origins;
pub mod host_settings;
pub mod limit_settings;
pub mod memory_limited_cache;
pub mod secret_text;
// Settings.
pub mod config;
// The database; logs and metrics.
pub mod db;
pub mod telemetry;
// User accounts.
pub mod accounts;
// Limits per key, address and connection.
pub mod rate_limit;
// Characters, presets and providers.
pub mod characters;
pub mod presets;
pub mod providers;
// The personas of users; the pictures of messages.
pub mod attachments;
pub mod personas;
// Spaces and their members.
pub mod spaces;
// Regex scripts of the cards and presets in a space.
pub mod regex_scripts;
// Conversations and messages.
pub mod conversations;
// Active lorebooks, memories, rounds, speaker selection.
pub mod lorebooks;
pub mod memories;
pub mod rounds;
pub mod speakers;
// Prompts.
pub mod prompt;
// Scheduling and execution of conversation runs.
pub mod runs;
// The cluster of nodes; import and export of spaces.
pub mod cluster;
pub mod space_transfer;
// Responses of the `/v1` API.
pub mod responses;
// All services, built once.
pub mod app;
// HTTP and WebSocket.
pub mod web;
// The server that mounts the endpoints.
pub mod server;
