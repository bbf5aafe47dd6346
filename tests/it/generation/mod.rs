//! Tests of the model call: every way in which a provider can respond, and the result.

pub mod attempts;
pub mod call_ends;
pub mod cancel;
pub mod limits;
