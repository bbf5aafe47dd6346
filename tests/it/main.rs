//! Tests through real doors.

mod generation;
mod llm;
mod support;
