//! Loads the lorebooks of a prompt, and which of their vectorized entries are similar to its messages.

pub mod content_vectors;
pub mod lore_loader;
pub mod vector_matches;
