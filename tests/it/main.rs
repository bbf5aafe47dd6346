//! Tests through real doors: one binary, so that it links once.

mod architecture;
mod crash;
mod evening;
mod generation;
mod laws;
mod llm;
// A workbench: a tool may wait there for its next test.
#[allow(dead_code)]
mod support;
