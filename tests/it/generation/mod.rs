//! The watch on the model call, row by row: every way in which a provider can answer, and what
//! becomes of it.

pub mod attempts;
pub mod call_ends;
pub mod cancel;
pub mod limits;
