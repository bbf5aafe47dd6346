//! The forms in which presets come and go: each in and out, pure.
//!
//! What a file says and we have no use for is its *origin*: it is kept beside the preset and given
//! back with it, so that nothing is lost on the way through. Addresses and passwords are not kept.

pub mod chat_completion;
pub mod chat_completion_export;
pub mod field_reader;
pub mod prompt_order;
pub mod text_completion;
