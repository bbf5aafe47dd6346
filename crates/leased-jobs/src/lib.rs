//! Leases, loops and timing of jobs that several processes execute.
//!
#![doc = include_str!("../README.md")]
//!
//! - [`job`]: what a kind of job provides.
//! - [`lease`]: the leases that this process holds, and why they are canceled.
//! - [`heartbeat`], [`claim_loop`], [`recovery`]: the three loops.

pub mod claim_loop;
pub mod clock_jump_guard;
pub mod concurrency_limit;
pub mod heartbeat;
pub mod job;
pub mod lease;
pub mod recovery;
#[cfg(test)]
mod test_job;
