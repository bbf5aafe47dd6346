//! What must hold, each a pure function over what was written down, with a test that sees it fail.

pub mod canceled_streams;
pub mod check;
pub mod copilot;
pub mod message_versions;
pub mod progress;
pub mod replies;
pub mod runs;
pub mod sockets;
pub mod streams;
pub mod texts;
pub mod timelines;
pub mod versions;
