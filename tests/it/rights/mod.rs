//! The rights grid: every endpoint of the API document and every frame of the WebSocket, for every
//! role, with an own id, a foreign one, a missing one and one of another kind. An endpoint without
//! a row, or a row without an endpoint, fails.

mod fixture;
mod frames;
mod grid;
mod ids;
mod roles;
mod table;
mod table_library;
mod table_lore;
mod table_memories;
mod table_spaces;
mod whisper_grid;
