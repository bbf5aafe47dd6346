//! Generates the text of one speaker: one model call with retries, timeouts, cleanup of the text and
//! usage, or an agent loop of model calls and tool calls.
//!
//! Knows models, prompts and tools, but no database. A caller with a prompt and a [`sink`] for the
//! text can call [`model_call::generate`], with or without a run. [`agent_loop`] is the loop of
//! conversation runs and of responses; each of them is an [`agent_host::AgentHost`].

pub mod agent_host;
pub mod agent_loop;
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
pub mod tools;
pub mod trim;
pub mod usage;
