//! The engine room behind its doors: the run path, held to its pages.

pub mod debounce;
pub mod partial;
pub mod policies;
pub mod start;
