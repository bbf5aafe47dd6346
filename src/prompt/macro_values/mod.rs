//! The values of macros in a prompt: `bindings` for names, cards and texts, `environment` for the
//! state of the conversation, `personas` for the personas of the people who speak. `tester` expands a
//! single text with them.

pub mod bindings;
pub mod environment;
pub mod personas;
pub mod tester;
