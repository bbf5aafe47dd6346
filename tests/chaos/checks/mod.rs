//! The checks of the chaos run: each is a pure function of the records, with a test in which it
//! detects a violation.

pub mod canceled_streams;
pub mod check;
pub mod continuations;
pub mod copilot;
pub mod directors;
pub mod human_turns;
pub mod memories;
pub mod message_versions;
pub mod progress;
pub mod received_events;
pub mod replies;
pub mod runs;
pub mod sockets;
pub mod streams;
pub mod texts;
pub mod timelines;
pub mod versions;
pub mod whispers;
