//! Generates the text of one speaker with a model, with or without tool calls.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`model_call`], [`attempt`], [`attempt_error`] | one model call, its attempts, and when one is repeated |
//! | [`sink`], [`outcome`] | who receives the output, and how a call ended |
//! | [`call_limits`], [`permits`] | limits of one call, and of the calls at the same time |
//! | [`trim`], [`name_prefix`], [`text`] | remove names from a streamed text, and end it before a stop sequence |
//! | [`reasoning`], [`thoughts`], [`tool_call_assembler`] | collect the other parts of an answer |
//! | [`usage`] | counts tokens |
//! | [`agent_loop`], [`next_action`] | the loop, and its decision after each step |
//! | [`agent_host`] | what the loop needs from its caller |
//! | [`tools`] | tools that this server executes |

pub mod agent_host;
pub mod agent_loop;
pub mod attempt;
pub mod attempt_error;
pub mod call_limits;
pub mod model_call;
pub mod name_prefix;
pub mod next_action;
pub mod outcome;
pub mod permits;
pub mod reasoning;
pub mod sink;
pub mod text;
pub mod thoughts;
pub mod tool_call_assembler;
pub mod tools;
pub mod trim;
pub mod usage;
