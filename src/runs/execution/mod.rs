//! Execution of claimed runs: claiming, the prompt, the model call, the stream, recovery.

pub mod agent_host;
pub mod approval_wait;
pub mod candidates;
pub mod chunk_sink;
pub mod executor;
pub mod fairness;
pub mod lease;
pub mod live_streams;
pub mod metrics;
pub mod permits;
pub mod preparation;
pub mod recovery;
pub mod run_job;
pub mod tool_offers;
