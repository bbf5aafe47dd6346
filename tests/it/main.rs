//! Tests through real doors.

mod architecture;
mod crash;
mod evening;
// A workbench: a tool may wait there for its next test.
#[allow(dead_code)]
mod support;
