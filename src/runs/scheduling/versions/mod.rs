//! Plans runs that add a version to an existing message, and merges the metadata of its parts.

pub mod continue_message;
pub mod continued_metadata;
