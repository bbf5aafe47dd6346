//! What must hold, each a pure function over what was written down, with a test that sees it fail.

pub mod check;
pub mod copilot;
pub mod forms;
pub mod progress;
pub mod promises;
pub mod runs;
pub mod silence;
pub mod sockets;
pub mod streams;
pub mod texts;
pub mod timelines;
pub mod versions;
