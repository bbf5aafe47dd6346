//! Loads the lorebooks of a prompt, and finds those of their vectorized entries that are similar to its messages.

pub mod content_vectors;
pub mod lore_loader;
pub mod vector_matches;
