//! Tests through real doors: one binary, so that it links once.
