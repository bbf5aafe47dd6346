//! Claims and executes runs: permits, prompt, model call, streaming, tool approvals, recovery. Also
//! generates copilot candidates.

pub mod agent_host;
pub mod approval_wait;
pub mod candidates;
pub mod chunk_sink;
pub mod director;
pub mod ends;
pub mod executor;
pub mod fairness;
pub mod lease;
pub mod live_streams;
pub mod metrics;
pub mod permits;
pub mod preparation;
pub mod recovery;
pub mod run_job;
