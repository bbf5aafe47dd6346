//! Tests of runs of threads under `/v1`.

mod cancellation;
mod context;
mod expiry;
mod limits;
mod node_loss;
mod personas;
mod polled;
mod streams;
mod support;
mod tools;
