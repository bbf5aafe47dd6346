//! Tests through real doors.

mod architecture;
mod support;
