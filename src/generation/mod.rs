//! Calls a language model once for one speaker: retries, timeouts, cleanup of the text, and usage.
//!
//! Knows models and prompts, but no database. A caller with a prompt and a [`sink`] for the text
//! can call [`model_call::generate`], with or without a run.

pub mod attempt;
pub mod attempt_error;
pub mod call_limits;
pub mod model_call;
pub mod name_prefix;
pub mod next_action;
pub mod outcome;
pub mod reasoning;
pub mod sink;
pub mod tool_call_assembler;
pub mod trim;
pub mod usage;
