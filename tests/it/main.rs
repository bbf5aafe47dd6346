//! Tests through real doors.
