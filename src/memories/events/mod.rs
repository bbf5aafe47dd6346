//! WebSocket events of the memory: which memories and summaries changed, for the people who may see
//! them.

pub mod change_loader;
pub mod memory_announcer;
pub mod memory_events;
pub mod recipients;
