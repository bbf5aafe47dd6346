//! The forms in which presets come and go: each in and out, pure.
//!
//! What a file says and we have no use for is its *origin*: it is kept beside the preset and given
//! back with it, so that nothing is lost on the way through. Addresses and passwords are not kept.

pub mod chat_completion;
pub mod chat_completion_out;
pub mod chat_entries;
pub mod reading;
pub mod text_completion;
