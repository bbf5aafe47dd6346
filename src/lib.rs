//! The modules, bottom up. A module may use those above it in this list.
//! `tests/it/architecture.rs` checks this.

// Parsers for settings that list hosts and networks.
pub mod setting_lists;
// Foundation: ids, time, settings, keys, shutdown.
pub mod clock;
pub mod config;
pub mod fail_point;
pub mod ids;
pub mod import_warning;
pub mod key_derivation;
pub mod shutdown;
// The database, the realtime hub, model clients.
pub mod db;
pub mod llm;
pub mod realtime;
pub mod telemetry;
// Rate limits; user accounts.
pub mod accounts;
pub mod rate_limit;
// Characters, presets and providers.
pub mod characters;
pub mod presets;
pub mod providers;
// Spaces and their members.
pub mod spaces;
// Conversations and messages.
pub mod conversations;
// Lore activation, rounds, speaker choice.
pub mod lore;
pub mod rounds;
pub mod speakers;
// Prompts and tools.
pub mod prompt;
pub mod tools;
// One generation of one speaker; uses no table.
pub mod generation;
// Scheduling and execution of runs.
pub mod runs;
// The cluster of nodes; import and export of spaces.
pub mod cluster;
pub mod space_transfer;
// Responses of the `/v1` API.
pub mod responses;
// The application state, built once.
pub mod app;
// HTTP and WebSocket.
pub mod web;
// The server that mounts the endpoints.
pub mod server;
