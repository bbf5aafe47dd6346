//! Leases, loops and timing of jobs that several processes execute.
//!
#![doc = include_str!("../README.md")]
//!
//! - [`job`]: what a kind of job provides.
//! - [`lease`]: the leases that this process holds, and why they are canceled.
//! - [`heartbeat`]: the loop that renews them.

pub mod heartbeat;
pub mod job;
pub mod lease;
#[cfg(test)]
mod test_job;
