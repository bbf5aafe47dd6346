//! Tests through real doors: one binary, so that it links once.
// All of this is tests, the support too: a panic is how they fail.
#![allow(clippy::unwrap_used)]

mod api;
mod architecture;
mod boundary;
mod commands;
mod config;
mod corpora;
mod crash;
mod dialects;
mod evening;
mod generation;
mod jobs_survive;
mod laws;
mod llm;
mod migrations;
mod nodes;
mod openai;
mod outages;
mod outbound;
mod pages;
mod prompt;
mod queue_contract;
mod races;
mod realtime;
mod refusals;
mod rights;
mod runs;
mod secrets;
// A workbench: a tool may wait there for its next test.
#[allow(dead_code)]
mod support;
mod together;
mod tour;
mod zombies;
