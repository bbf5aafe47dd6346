//! One turn of one speaker: asks a model, watches it, cleans what it says, hands it on.
//!
//! Knows models; has never heard of a table. Whoever has a prompt and a place for the text
//! ([`sink`]) may call [`generator::generate`], with or without a run behind it.

pub mod attempt;
pub mod attempt_error;
pub mod call_limits;
pub mod model_call;
pub mod name_prefix;
pub mod outcome;
pub mod reasoning;
pub mod sink;
pub mod tool_call_assembler;
pub mod trim;
pub mod usage;
