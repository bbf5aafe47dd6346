//! Integration tests through the public interfaces, in one binary so that it is linked once.
// Test code, including the support modules, fails by a panic.
#![allow(clippy::unwrap_used)]

mod api;
mod architecture;
mod atomic_writes;
mod boundary;
mod cluster;
mod command_errors;
mod commands;
mod config;
mod dialects;
mod generation;
mod job_recovery;
mod live;
mod llm;
mod memory_crash;
mod migrations;
mod one_evening_scenario;
mod outages;
mod outbound;
mod pages;
mod process_crash;
mod prompt;
mod queue_contract;
mod races;
mod readme_tour;
mod rights;
mod runs;
mod scheduling_invariants;
mod secrets;
mod stale_leases;
#[allow(dead_code)]
mod support;
mod untrusted_input;
mod v1;
