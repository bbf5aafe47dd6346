//! The engine room behind its doors: the run path, held to its pages.

pub mod auto_mode;
pub mod branching;
pub mod branching_cost;
pub mod broken_database;
pub mod called;
pub mod cancel;
pub mod clocks;
pub mod copilot;
pub mod debounce;
pub mod dispatch;
pub mod failures;
pub mod heartbeat;
pub mod last_turn;
pub mod memory;
pub mod order_of_events;
pub mod policies;
pub mod races;
pub mod reaper;
pub mod reasoning;
pub mod regenerate;
pub mod room_tools;
pub mod rounds;
pub mod shutdown;
pub mod speakers;
pub mod start;
pub mod statements;
