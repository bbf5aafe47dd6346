//! Tests through real doors.

mod architecture;
// A workbench: a tool may wait there for its next test.
#[allow(dead_code)]
mod support;
