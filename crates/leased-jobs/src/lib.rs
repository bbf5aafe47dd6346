//! Claims jobs that several processes share, renews their leases, and recovers the jobs of dead
//! processes: loops and timing. Contains no database statements; each kind of job implements them.
//!
#![doc = include_str!("../README.md")]
//!
//! - [`job`]: what a kind of job provides.
//! - [`lease`]: the leases that this process holds, and why they are canceled.
//! - [`heartbeat`], [`claim_loop`], [`recovery`]: the three loops.
//! - [`clock_jump_guard`]: postpones recovery after a suspension or a clock jump.
//! - [`concurrency_limit`]: limits how many jobs of this process run at the same time.

pub mod claim_loop;
pub mod clock_jump_guard;
pub mod concurrency_limit;
pub mod heartbeat;
pub mod job;
pub mod lease;
pub mod recovery;
#[cfg(test)]
mod test_job;
