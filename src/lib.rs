//! The map of the house, from the ground up. A room may name what stands above it in this list
//! and nothing below; `tests/it/architecture.rs` holds it so.

// Below all: how a setting lists hosts and networks.
pub mod setting_lists;
// Floor 1, the ground: ids, time, settings, keys, closing down.
pub mod clock;
pub mod config;
pub mod fail_point;
pub mod ids;
pub mod import_warning;
pub mod key_derivation;
pub mod shutdown;
// Floor 2: the database, the loudspeaker, the models.
pub mod db;
pub mod llm;
pub mod realtime;
pub mod telemetry;
// Floor 3: people with accounts.
pub mod accounts;
// Floor 4: what rooms are furnished with.
pub mod characters;
pub mod presets;
pub mod providers;
// Floor 5: rooms and the seats in them.
pub mod spaces;
// Floor 6: timelines.
pub mod conversations;
// Floor 7: who speaks.
pub mod lore;
pub mod rounds;
pub mod speakers;
// Floor 8: what a model is told; what it may call.
pub mod prompt;
pub mod tools;
// Floor 9: one turn of one speaker; knows no table.
pub mod generation;
// Floor 10: the engine room.
pub mod runs;
// Floor 11: one node of several; a whole space as a file.
pub mod cluster;
pub mod space_transfer;
// Floor 12: what programs ask for.
pub mod responses;
// Floor 13: the parts, built once.
pub mod app;
// Floor 14: what all doors share.
pub mod http;
// Floor 15: the doors.
pub mod api;
pub mod socket;
pub mod v1;
// Floor 16: mounts the doors.
pub mod server;
