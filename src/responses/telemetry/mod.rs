//! Modules that record how the calls of programs under `/v1` ended: one log line each (`call_log`), and
//! metrics (`call_metrics`). Neither contains a text, an argument of a tool or a credential.

pub mod call_log;
pub mod call_metrics;
pub mod call_origin;
pub mod ended_call;
