//! Serve.
fn main() {}
