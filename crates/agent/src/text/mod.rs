//! Modules that change a text of a model while it streams.

pub mod stop_sequences;
pub mod token_cap;
